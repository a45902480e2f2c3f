#!/usr/bin/env bash
# Prints the Python that has the packages of tests/bench/NAME_peers.txt: installed once into a virtual environment in
# cargo's target folder.
#
#   peers.sh encoder|index|transition
set -euo pipefail
cd "$(dirname "$0")/.."
wanted=tests/bench/$1_peers.txt
venv=$(scripts/target-dir.sh)/$1-peers
# Copied last: this file marks a complete installation.
if ! cmp -s "$wanted" "$venv/installed.txt"; then
  python3 -m venv --clear "$venv" || { echo "peers: needs python3 with venv" >&2; exit 1; }
  "$venv/bin/python" -m pip install --quiet -r "$wanted" >&2
  cp "$wanted" "$venv/installed.txt"
fi
echo "$venv/bin/python"
