#!/usr/bin/env bash
# Takes the pictures of the page for README.md and docs/page.md from a demo, with Chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test
scripts/build.sh demo
installed=$(scripts/contract.sh)
work=$(mktemp -d "${TMPDIR:-/tmp}/reprise.XXXXXX")
"$(scripts/target-dir.sh)/demo/reprise" demo --data-dir "$work" --listen 127.0.0.1:9181 >"$work.log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null || true; rm -rf "$work" "$work.log"' EXIT
# The demo prints the page's address when its videos are searchable.
until grep -q 'The page is at' "$work.log"; do
  kill -0 "$server" || { cat "$work.log" >&2; exit 1; }
  sleep 0.5
done
node tests/web/pictures.mjs "$installed/node/node_modules" http://127.0.0.1:9181 docs
