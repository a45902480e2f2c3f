#!/usr/bin/env bash
# Measures the page in Chromium on a library of 10,000 clips, and on the demo's. Writes the table to BENCHMARKS.md.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test
scripts/build.sh release
installed=$(scripts/contract.sh)
reprise=${REPRISE_BIN:-$(scripts/target-dir.sh)/release/reprise}
work=$(mktemp -d "${TMPDIR:-/tmp}/reprise.XXXXXX")
server=
stop() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null; wait "$server" 2>/dev/null || true; }
  server=
}
trap 'stop; rm -rf "$work"' EXIT

# Starts a command that serves, and waits until it takes requests.
serve() {
  "$@" >"$work/server.log" 2>&1 &
  server=$!
  until curl --fail --silent --output /dev/null "http://127.0.0.1:9180/readyz"; do
    kill -0 "$server" || { cat "$work/server.log" >&2; exit 1; }
    sleep 0.2
  done
}
# Waits until no job is left.
settle() {
  until [ "$(curl --silent http://127.0.0.1:9180/v1/stats | grep -c '"jobs_queued":0,"jobs_running":0')" = 1 ]; do sleep 1; done
}
measure() {
  node tests/bench/page.mjs "$installed/node/node_modules" http://127.0.0.1:9180 "$1"
}

serve "$reprise" demo --data-dir "$work/demo" --listen 127.0.0.1:9180
# The demo adds its films one after another, so no job is left between two of them as well.
until grep -q 'The page is at' "$work/server.log"; do sleep 1; done
settle
demo=$(measure 'a dive')
stop

# Clips of one second of one long film: what the page costs depends on their number, not on their pictures.
ffmpeg -v error -nostdin -f lavfi -i testsrc2=size=320x180:rate=10 -t 10000 -c:v libx264 -preset ultrafast -g 10 "$work/long.mp4"
serve "$reprise" serve --data-dir "$work/long" --listen 127.0.0.1:9180 --model builtin:tiny
curl --fail --silent --output /dev/null -F file=@"$work/long.mp4" \
  -F 'segmentation={"policy": "fixed", "params": {"every_seconds": 1}}' http://127.0.0.1:9180/v1/videos
settle
long=$(measure 'a coloured square')
stop
node tests/bench/page_table.mjs "$demo" "$long"
