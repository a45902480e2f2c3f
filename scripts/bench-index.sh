#!/usr/bin/env bash
# Measures the index against hnswlib, faiss, usearch, SymphonyQG and SVS. Writes the tables and the plot to BENCHMARKS.md and docs.
# Arguments go to tests/bench/index_peers.py. Without arguments it then measures ranks in a gallery of LoVR's size,
# searches during writes, and a build of a million vectors. The build takes minutes and gigabytes;
# REPRISE_BENCH_MILLION=0 leaves it out.
#
# The texts and the million vectors need REPRISE_TEST_DATA; without it only the clustered set is measured. The vectors
# are written once, to REPRISE_INDEX_DATA or to cargo's target folder. The peers are installed once into a virtual
# environment in the target folder. REPRISE_INDEX_PEERS names a Python that has them already.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh demo
[ -r /proc/self/stat ] || { echo 'bench-index: needs /proc: run it on Linux' >&2; exit 1; }

target=$(scripts/target-dir.sh)
python=${REPRISE_INDEX_PEERS:-$(scripts/peers.sh index)}

[ -n "${REPRISE_BIN:-}" ] || cargo build --release --locked --package reprise --features milvus,otlp
reprise=${REPRISE_BIN:-$target/release/reprise}
data=${REPRISE_INDEX_DATA:-$target/index-data}
sets=clips
[ -z "${REPRISE_TEST_DATA:-}" ] || sets=clips,texts
# shellcheck disable=SC2086 # one word a set
"$python" tests/bench/index_data.py "$data" ${sets//,/ }
"$python" tests/bench/index_peers.py "$reprise" "$data" --sets "$sets" "$@"
[ $# = 0 ] || exit 0

cargo bench --locked -p reprise-index --bench eval
cargo bench --locked -p reprise-index --bench search -- 100000
cargo bench --locked -p reprise-index --bench writers -- 100000
if [ "$sets" = clips ] || [ "${REPRISE_BENCH_MILLION:-1}" = 0 ]; then
  echo 'bench-index: a million vectors left out' >&2
  exit 0
fi
cargo bench --locked -p reprise-index --bench search -- 1000000
"$python" tests/bench/index_data.py "$data" million
"$reprise" index bench --base "$data/million.base.npy" --queries "$data/million.queries.npy" \
  --truth "$data/million.truth.npy" --codes int4
