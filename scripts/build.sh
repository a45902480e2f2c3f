#!/usr/bin/env bash
# Builds the release binary: one line with a bar on a terminal, one line a minute elsewhere, and one when it is done.
# If the build fails, all that cargo said follows, but for its bar.
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
# Cargo shows no bar without a terminal unless it is told to; of the bar come the numbers.
CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=80 CARGO_TERM_COLOR=never \
  cargo build --release --locked --bin reprise >"$log" 2>&1 &
cargo=$!
trap 'kill "$cargo" 2>/dev/null || true; rm -f "$log"' EXIT
trap 'exit 130' INT TERM

# The newest of cargo's bars, as "done all"; nothing before the first, while crates are fetched.
newest() {
  tail -c 500 "$log" | tr '\r' '\n' | sed -n 's|^ *Building \[.*\] \([0-9]*\)/\([0-9]*\).*|\1 \2|p' | tail -n 1
}

clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

draw() {
  local width=30 full
  full=$(($1 * width / $2))
  printf '\rbuilding  [%s%s] %d/%d  %s ' \
    "$(printf '%*s' "$full" '' | tr ' ' '#')" "$(printf '%*s' $((width - full)) '')" "$1" "$2" "$(clock $SECONDS)"
}

reported=0
while kill -0 "$cargo" 2>/dev/null; do
  read -r done all <<<"$(newest)" || true
  if [ -t 1 ]; then
    if [ -n "$done" ]; then draw "$done" "$all"; else printf '\rfetching crates  %s ' "$(clock $SECONDS)"; fi
  elif [ $((SECONDS / 60)) -gt $reported ]; then
    reported=$((SECONDS / 60))
    echo "building: ${done:-0} of ${all:-?} units, $(clock $SECONDS)"
  fi
  sleep 0.5
done
[ ! -t 1 ] || printf '\r\033[K'
if ! wait "$cargo"; then
  tr '\r' '\n' <"$log" | grep -Ev '^ *Building \[' >&2 || true
  echo 'build: failed' >&2
  exit 1
fi
echo "built in $(clock $SECONDS)"
