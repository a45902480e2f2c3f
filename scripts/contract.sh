#!/usr/bin/env bash
# Installs the programs with which tests check the HTTP API, for Python and for Node.js, into the target folder: a validator
# and generators of the OpenAPI file, and clients of the tus protocol. Prints their folder. Quick if they are there.
# REPRISE_TEST_CONTRACT names another folder.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${REPRISE_TEST_CONTRACT:-$(scripts/target-dir.sh)/contract}
wanted=tests/contract
# Copied last: these files mark a complete installation.
if ! cmp -s "$wanted/requirements.txt" "$folder/installed.txt"; then
  echo 'setup: installing the validator and the generators of the contract for Python' >&2
  python3 -m venv --clear "$folder/python" >&2
  "$folder/python/bin/python" -m pip install --quiet --disable-pip-version-check -r "$wanted/requirements.txt" >&2
  cp "$wanted/requirements.txt" "$folder/installed.txt"
fi
if ! cmp -s "$wanted/package-lock.json" "$folder/installed.json"; then
  echo 'setup: installing the generator of the contract for Node.js' >&2
  mkdir -p "$folder/node"
  cp "$wanted/package.json" "$wanted/package-lock.json" "$folder/node"
  npm ci --prefix "$folder/node" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  cp "$wanted/package-lock.json" "$folder/installed.json"
fi
echo "$folder"
