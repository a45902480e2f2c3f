#!/usr/bin/env bash
# Measures the encoders on the CPU against PyTorch and ONNX Runtime, and writes the tables to BENCHMARKS.md. Arguments
# go to tests/bench/encoder_peers.py. The first run installs the peers into a virtual environment in cargo's target
# folder: some gigabytes, because torch brings the CUDA libraries by default. REPRISE_ENCODER_PEERS names a Python
# that has them already.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh demo
[ -r /proc/self/stat ] || { echo 'bench-encoders: needs /proc: run it on Linux' >&2; exit 1; }

target=$(scripts/target-dir.sh)
python=${REPRISE_ENCODER_PEERS:-}
if [ -z "$python" ]; then
  wanted=tests/bench/encoder_peers.txt
  venv=$target/encoder-peers
  python=$venv/bin/python
  # Copied last: this file marks a complete installation.
  if ! cmp -s "$wanted" "$venv/installed.txt"; then
    python3 -m venv --clear "$venv" || { echo 'bench-encoders: needs python3 with venv' >&2; exit 1; }
    "$python" -m pip install --quiet -r "$wanted"
    cp "$wanted" "$venv/installed.txt"
  fi
fi

cargo build --release --locked --package reprise --features milvus,otlp
exec "$python" tests/bench/encoder_peers.py "${REPRISE_BIN:-$target/release/reprise}" "$@"
