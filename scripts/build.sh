#!/usr/bin/env bash
# Builds the binary with a profile of Cargo.toml: `build.sh release` or `build.sh demo`. Shows a progress bar on a
# terminal, otherwise a line per minute, and a line at the end. If the build fails, prints all of cargo's output except
# its bars.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${1:?'which profile: release or demo'}
# What a first look does not need: the engine milvus and traces over OTLP.
features=()
[ "$profile" != release ] || features=(--features milvus,otlp)
log=$(mktemp)
# Force cargo to draw its progress bar without a terminal: the step counts are read from it.
CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=80 CARGO_TERM_COLOR=never \
  cargo build --profile "$profile" --locked --package reprise "${features[@]}" >"$log" 2>&1 &
cargo=$!
trap 'kill "$cargo" 2>/dev/null || true; rm -f "$log"' EXIT
trap 'exit 130' INT TERM

# The latest of cargo's progress bars, as "done all". Empty while cargo fetches crates.
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
