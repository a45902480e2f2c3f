#!/usr/bin/env bash
# Prints the folder that cargo builds into, wherever the caller's settings put it.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo metadata --format-version 1 --no-deps --quiet | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'
