#!/usr/bin/env bash
# Breaks the code of an area at N places, one at a time, and runs its crate's unit tests; for the server's areas and models'
# files also the integration tests that use them: scripts/mutants.sh AREA [N] [SEED].
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
  server) package=reprise-server; files=(server/src/{search,jobs,vectors,catalog/filter}/'**') ;;
  media)
    package=reprise-encoders
    files=(encoders/src/video/{nut,answer,clock,frame_rate,probe}.rs)
    ;;
  models) package=reprise-encoders; files=('encoders/src/loading/**' 'encoders/src/families/*/config.rs') ;;
  *) echo 'usage: scripts/mutants.sh index|parsers|search|jobs|vectors|server|media|models [N] [SEED]' >&2; exit 2 ;;
esac
tests=()
case $1 in
  media) tests=(--first=video::) ;;
  models)
    tests=(
      --first=config,loading::
      --then=encoders/src/families/whisper=transcribe_whisper
      --then=encoders/src=encoders
    )
    ;;
  search | jobs | vectors | server)
    # The first that fits a file counts.
    tests=(
      --then=server/src/search/late=moments::,long_text::,answers::,search::
      --then=server/src/search/standing=standing::,alerts::
      --then=server/src/search/ranges=search_ranges::,search_images::,resegment::
      --then=server/src/search/timeline=answers::,contract::caching,http_malformed::,resegment::
      --then=server/src/search/input=engines::servers,answers::,search::,subtitles::
      --then=server/src/search=answers::,embed_many::,long_text::,moments::,search::,search_batch::,search_examples::,search_images::,search_ranges::,standing::,subtitles::
      --then=server/src/jobs=activity,catalog::jobs,faults::jobs,ingest,transcribe
      --then=server/src/vectors/{hnsw_rs=hnsw_rs,milvus=milvus,pgvector=pgvector}
      --then=server/src/vectors/samples=standing::
      --then=server/src/vectors=engines::,http_spaces::,served_index::,vector_index::
      --then=server/src/catalog/filter=answers::,catalog::filters,catalog::labels,catalog::visibility,http_library::
    )
    ;;
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
# Not cargo's own folder: there the tree's crates would have the file names of ours.
built=$CARGO_TARGET_DIR
export CARGO_TARGET_DIR=$built/mutants/target
if [ ${#tests[@]} -gt 0 ]; then
  REPRISE_TEST_ENGINES=${REPRISE_TEST_ENGINES:-$built/engines}
  REPRISE_TEST_CONTRACT=${REPRISE_TEST_CONTRACT:-$built/contract}
  export REPRISE_TEST_ENGINES REPRISE_TEST_CONTRACT
fi
exec python3 "$script" "${tests[@]}" "$package" "${2:-100}" "${3:-1}" "${files[@]}"
