#!/usr/bin/env bash
# Measures the built server (tests/bench): all costs, or the named parts. Writes complete tables to BENCHMARKS.md.
# Needs Linux, because it reads CPU time from /proc.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh demo
[ -r /proc/self/stat ] || { echo 'bench: needs /proc: run it on Linux' >&2; exit 1; }

# Speech is compared by a program of its own: it needs PyTorch.
if [ "${1:-}" = speech ]; then
  python=${REPRISE_ENCODER_PEERS:-$(scripts/peers.sh encoder)}
  [ -n "${REPRISE_BIN:-}" ] || cargo build --release --locked --package reprise
  exec "$python" tests/bench/speech_peers.py "${REPRISE_BIN:-$(scripts/target-dir.sh)/release/reprise}"
fi

# So is cut detection: it runs PySceneDetect and TransNetV2.
if [ "${1:-}" = transitions ]; then
  python=${REPRISE_TRANSITION_PEERS:-$(scripts/peers.sh transition)}
  [ -n "${REPRISE_BIN:-}" ] || cargo build --release --locked --package reprise
  exec "$python" tests/bench/transition_peers.py "${REPRISE_BIN:-$(scripts/target-dir.sh)/release/reprise}" --write "${@:2}"
fi

# One build for both, so that nothing is compiled twice.
cargo build --release --locked --no-default-features --package reprise --package reprise-tests --bin reprise --bin bench-service
built=$(scripts/target-dir.sh)/release
REPRISE_BIN=${REPRISE_BIN:-$built/reprise} exec "$built/bench-service" "$@"
