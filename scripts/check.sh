#!/usr/bin/env bash
# Checks for every change before its merge, besides the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test

# Installs a cargo subcommand into the user's cargo folder if it is missing.
need() {
  command -v "$1" >/dev/null || cargo install --locked "$1" </dev/null
}
need cargo-machete
need cargo-deny

run() {
  echo "check: $*"
  "$@"
}
run cargo fmt --all --check
run cargo clippy --workspace --all-targets --quiet -- -D warnings
RUSTDOCFLAGS='-D warnings' run cargo doc --workspace --no-deps --quiet
run cargo machete
run scripts/check-page.sh
run cargo deny --log-level error check bans licenses sources
echo 'check: clean'
