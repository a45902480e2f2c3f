#!/usr/bin/env bash
# Measures the encoders on the CPU against PyTorch, ONNX Runtime and OpenVINO, and writes the tables to BENCHMARKS.md. Arguments
# go to tests/bench/encoder_peers.py. The first run installs the peers into a virtual environment in cargo's target
# folder: some gigabytes, because torch brings the CUDA libraries by default. REPRISE_ENCODER_PEERS names a Python
# that has them already.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh demo
[ -r /proc/self/stat ] || { echo 'bench-encoders: needs /proc: run it on Linux' >&2; exit 1; }

target=$(scripts/target-dir.sh)
python=${REPRISE_ENCODER_PEERS:-$(scripts/peers.sh encoder)}

[ -n "${REPRISE_BIN:-}" ] || cargo build --release --locked --package reprise --features milvus,otlp
exec "$python" tests/bench/encoder_peers.py "${REPRISE_BIN:-$target/release/reprise}" "$@"
