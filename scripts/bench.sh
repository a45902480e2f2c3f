#!/usr/bin/env bash
# Measures the built server (tests/bench) and writes the tables to BENCHMARKS.md. Needs Linux: CPU time is read
# from /proc.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh demo
[ -r /proc/self/stat ] || { echo 'bench: needs /proc: run it on Linux' >&2; exit 1; }

if [ -z "${REPRISE_BIN:-}" ]; then
  cargo build --release --locked --bin reprise
  REPRISE_BIN=$(scripts/target-dir.sh)/release/reprise
fi
REPRISE_BIN=$REPRISE_BIN exec cargo bench --package reprise-tests --bench service
