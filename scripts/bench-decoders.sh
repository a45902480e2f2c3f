#!/usr/bin/env bash
# Measures a model of two billion seeded weights that writes texts, on the CPU beside PyTorch, and writes the table to
# BENCHMARKS.md. Arguments go to tests/bench/decoder_peers.py. Takes about half an hour, 14 GB of memory and 5 GB of disk.
# The peers are those of bench-encoders.sh. REPRISE_TEST_WORDS names the folder of the small models whose tokenizer is used.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh demo
words=${REPRISE_TEST_WORDS:-${REPRISE_TEST_DATA:+$REPRISE_TEST_DATA/../words}}
[ -d "$words" ] || { echo 'bench-decoders: REPRISE_TEST_WORDS must name the folder of the small models' >&2; exit 1; }
python=${REPRISE_ENCODER_PEERS:-$(scripts/peers.sh encoder)}
[ -n "${REPRISE_BIN:-}" ] || cargo build --release --locked --package reprise --features milvus,otlp
exec "$python" tests/bench/decoder_peers.py "${REPRISE_BIN:-$(scripts/target-dir.sh)/release/reprise}" "$words" --write "$@"
