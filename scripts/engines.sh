#!/usr/bin/env bash
# Installs the vector engines that tests use, and OpenTimelineIO, into a Python environment in the target folder, and prints its folder.
# Quick if it is there. REPRISE_TEST_ENGINES names another folder.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${REPRISE_TEST_ENGINES:-$(scripts/target-dir.sh)/engines}
wanted=tests/engines/requirements.txt
# Copied last: this file marks a complete installation.
if ! cmp -s "$wanted" "$folder/installed.txt"; then
  echo 'setup: installing the vector engines of the tests' >&2
  python3 -m venv --clear "$folder" >&2
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$wanted" >&2
  cp "$wanted" "$folder/installed.txt"
fi
echo "$folder"
