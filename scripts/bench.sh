#!/usr/bin/env bash
# Measures the built server and writes the tables to BENCHMARKS.md. Needs Linux (CPU time is read from /proc).
#
#   REPRISE_BENCH_VIDEO   a video to ingest; without it two minutes of moving patterns with cuts are rendered
#   REPRISE_MODEL         the model; without it the built-in one
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh demo
[ -r /proc/self/stat ] || { echo 'bench: needs /proc: run it on Linux' >&2; exit 1; }

if [ -z "${REPRISE_BIN:-}" ]; then
  cargo build --release --locked --bin reprise
  REPRISE_BIN=$(scripts/target-dir.sh)/release/reprise
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/reprise.XXXXXX")
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$scratch"
}
trap cleanup EXIT

video=${REPRISE_BENCH_VIDEO:-$scratch/patterns.mp4}
described=$(basename "$video")
if [ ! -e "$video" ]; then
  described='two minutes of moving patterns, H.264, 1280x720, a cut every 6 s'
  inputs=() labels=
  for at in $(seq 0 19); do
    case $((at % 3)) in
      0) inputs+=(-f lavfi -i "testsrc2=s=1280x720:r=25:d=6") ;;
      1) inputs+=(-f lavfi -i "mandelbrot=s=1280x720:r=25:start_scale=$((at + 1)),trim=duration=6") ;;
      2) inputs+=(-f lavfi -i "life=s=640x360:r=25:mold=10:seed=$at,trim=duration=6,scale=1280:720,format=yuv420p") ;;
    esac
    labels+="[$at:v]format=yuv420p,setsar=1[v$at];"
  done
  joined=$(for at in $(seq 0 19); do printf '[v%d]' "$at"; done)
  ffmpeg -nostdin -loglevel error "${inputs[@]}" -filter_complex "$labels${joined}concat=n=20[v]" \
    -map '[v]' -c:v libx264 -preset veryfast "$video"
fi
seconds=$(ffprobe -v error -show_entries format=duration -of csv=p=0 "$video")

# CPU seconds of a process and of the children that it has waited for.
cpu_of() {
  awk -v "tick=$(getconf CLK_TCK)" '{ sub(/^.*\) /, ""); print ($12 + $13 + $14 + $15) / tick }' "/proc/$1/stat"
}
ask() { # the server's answer to GET $1
  exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
  printf 'GET %s HTTP/1.0\r\nHost: %s\r\n\r\n' "$1" "$address" >&3
  cat <&3
  exec 3<&-
}
encoding() { ask /metrics | awk '/^reprise_encode_seconds_sum/ { sum += $2 } END { print sum + 0 }'; }
per_minute() { awk -v "used=$1" -v "seconds=$seconds" 'BEGIN { printf "%.2f", used / seconds * 60 }'; }

TIMEFORMAT='%U %S'
decode=$({ time ffmpeg -nostdin -loglevel error -i "$video" -an -f null - >/dev/null 2>&1; } 2>&1 |
  awk '{ print $1 + $2 }')

"$REPRISE_BIN" serve --listen 127.0.0.1:0 --data-dir "$scratch/data" --runners 1 \
  >"$scratch/said" 2>"$scratch/log" </dev/null &
server=$!
for _ in $(seq 600); do
  address=$(sed -n 's|^listening on http://||p' "$scratch/said")
  [ -z "$address" ] || ! ask /readyz | head -n 1 | grep -q ' 200 ' || break
  kill -0 "$server" 2>/dev/null || { cat "$scratch/log" >&2; exit 1; }
  sleep 0.1
done
before=$(cpu_of "$server")
encoded_before=$(encoding)
started=$(date +%s.%N)
"$REPRISE_BIN" ingest --server "http://$address" "$video" >"$scratch/ingested" 2>&1 ||
  { cat "$scratch/ingested" "$scratch/log" >&2; exit 1; }
wall=$(awk -v "from=$started" -v "to=$(date +%s.%N)" 'BEGIN { print to - from }')
ingest=$(awk -v "from=$before" -v "to=$(cpu_of "$server")" 'BEGIN { print to - from }')
encode=$(awk -v "from=$encoded_before" -v "to=$(encoding)" 'BEGIN { print to - from }')
kill "$server"
wait "$server" || true
server=

cargo bench -p reprise-index --bench search >"$scratch/search"
{
  echo '# Benchmarks'
  echo
  echo "Made by \`make bench\`; one run on $(nproc) cores" \
    "($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)), $(date -u +%F)."
  echo
  echo '## Ingest'
  echo
  echo "$described; model ${REPRISE_MODEL:-builtin:tiny}."
  echo
  echo '| what | seconds per minute of video |'
  echo '|---|---|'
  echo "| ingest, CPU time of the server and its ffmpeg | $(per_minute "$ingest") |"
  echo "| decoding only, CPU time of \`ffmpeg -f null\` | $(per_minute "$decode") |"
  echo "| encoding only, time of the batches | $(per_minute "$encode") |"
  echo "| ingest, by the clock | $(per_minute "$wall") |"
  echo
  echo '## Search'
  echo
  echo 'Clustered vectors in one process, 10 hits, 200 queries one after the other.'
  echo
  sed 's/^\([^|].*:\) */- \1 /' "$scratch/search"
} >BENCHMARKS.md
cat BENCHMARKS.md
