#!/usr/bin/env bash
# Runs every test. The last line is "N passed, N failed, N skipped"; the exit status is 0 only if none failed.
#
# A test that can't run here prints a line "skipped: REASON". It counts as skipped, not as passed.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test

output=$(mktemp "${TMPDIR:-/tmp}/reprise.XXXXXX")
trap 'rm -f "$output"' EXIT

# Same targets, features and profile as `cargo test`, so that nothing is built twice. Benchmarks are no tests.
cargo build --workspace --bins --tests --examples </dev/null
REPRISE_BIN=$(scripts/target-dir.sh)/debug/reprise
REPRISE_TEST_ENGINES=${REPRISE_TEST_ENGINES:-$(scripts/target-dir.sh)/engines}
REPRISE_TEST_CONTRACT=${REPRISE_TEST_CONTRACT:-$(scripts/target-dir.sh)/contract}
# One thread more than cores: a fifth of the time, tests wait for disks and other processes.
RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(($(getconf _NPROCESSORS_ONLN) + 1))}
export REPRISE_BIN REPRISE_TEST_ENGINES REPRISE_TEST_CONTRACT RUST_TEST_THREADS

status=0
cargo test --workspace --no-fail-fast -- --show-output </dev/null 2>&1 | tee "$output" || status=$?
awk -v "status=$status" -f scripts/tally.awk "$output"
