#!/usr/bin/env bash
# Runs every test. The last line is "N passed, N failed, N skipped"; the status is 0 only if none failed.
#
# A test that can't run here prints a line "skipped: why": it counts as skipped and not as passed.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test

scratch=$(mktemp -d "${TMPDIR:-/tmp}/reprise.XXXXXX")
chmod 711 "$scratch"
postgres=$scratch/postgres
cleanup() {
  [ ! -e "$postgres/data" ] || scripts/postgres.sh stop "$postgres" || true
  rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The same targets, features and profile as `cargo test`: nothing is built twice.
cargo build --workspace --all-targets </dev/null
REPRISE_BIN=$(scripts/target-dir.sh)/debug/reprise
export REPRISE_BIN

if [ -z "${TEST_DATABASE_URL:-}" ] && scripts/postgres.sh find >/dev/null; then
  mkdir "$postgres"
  if TEST_DATABASE_URL=$(scripts/postgres.sh start "$postgres"); then
    export TEST_DATABASE_URL
  else
    unset TEST_DATABASE_URL
    cat "$postgres.log" "$postgres/server.log" 2>/dev/null || true
    echo 'test: the private PostgreSQL server did not start; tests that need it are skipped' >&2
  fi
fi

status=0
cargo test --workspace --no-fail-fast -- --show-output </dev/null 2>&1 | tee "$scratch/output" || status=$?
awk -v "status=$status" -f scripts/tally.awk "$scratch/output"
