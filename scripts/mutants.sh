#!/usr/bin/env bash
# Breaks the code of an area at N places, one at a time, and runs its crate's unit tests: scripts/mutants.sh AREA [N] [SEED].
# A mutant that survives is a change that no test noticed. The same SEED picks the same mutants of the same code.
# Tries the last commit, in a tree of its own whose build later runs use again.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  index) package=reprise-index; files=('index/src/**') ;;
  parsers)
    package=reprise-server
    files=('server/src/subtitles/**' 'server/src/catalog/filter/**' server/src/http/ranges.rs server/src/search/cursor.rs
      server/src/access/token.rs server/src/storage/features.rs)
    ;;
  search | jobs | vectors) package=reprise-server; files=("server/src/$1/**") ;;
  media)
    package=reprise-encoders
    files=(encoders/src/video/{nut,answer,clock,frame_rate,probe}.rs 'encoders/src/loading/**' 'encoders/src/families/*/config.rs')
    ;;
  *) echo 'usage: scripts/mutants.sh index|parsers|search|jobs|vectors|media [N] [SEED]' >&2; exit 2 ;;
esac
command -v cargo-mutants > /dev/null || { echo 'mutants: needs cargo-mutants: cargo install cargo-mutants' >&2; exit 1; }

CARGO_TARGET_DIR=$(scripts/target-dir.sh)
export CARGO_TARGET_DIR
tree=$CARGO_TARGET_DIR/mutants/tree
script=$PWD/scripts/mutants.py
if [ -e "$tree/.git" ]; then
  git -C "$tree" checkout --quiet --force --detach "$(git rev-parse HEAD)"
else
  git worktree prune
  git worktree add --quiet --detach "$tree"
fi
cd "$tree"
exec python3 "$script" "$package" "${2:-100}" "${3:-1}" "${files[@]}"
