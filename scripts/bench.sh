#!/usr/bin/env bash
# Measures the built server (tests/bench) and writes the tables to BENCHMARKS.md: all costs, or the parts that are
# named. Needs Linux: CPU time is read from /proc.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh demo
[ -r /proc/self/stat ] || { echo 'bench: needs /proc: run it on Linux' >&2; exit 1; }

# Together with the binary that `make demo` builds, so that nothing is compiled twice.
cargo build --release --locked --bin reprise --bin bench-service
built=$(scripts/target-dir.sh)/release
REPRISE_BIN=${REPRISE_BIN:-$built/reprise} exec "$built/bench-service" "$@"
