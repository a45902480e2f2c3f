#!/usr/bin/env bash
# Prints cargo's target folder, which the caller's settings may have moved.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo metadata --format-version 1 --no-deps --quiet | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'
