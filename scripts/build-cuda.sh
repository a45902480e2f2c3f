#!/usr/bin/env bash
# Builds `reprise` with its CUDA backend for x86-64 Linux. The binary uses an NVIDIA GPU if there is one. Without a
# GPU and CUDA libraries it runs on the CPU. The build needs no GPU, driver or CUDA toolkit: NVIDIA's compiler comes
# as Python packages.
#
#   scripts/build-cuda.sh [check]     with `check` only type-checks the code
#
#   CUDA_WORK           folder for compiler, stand-ins and build output         [cuda/ in cargo's target folder]
#   CUDA_COMPUTE_CAP    oldest supported GPU: 80 is A100, 89 L4, 90 H100        [80]
#   PYTHON              a Python 3 with pip                                     [python3]
#
# Using a GPU needs a driver for CUDA 13 (580 or newer), and cuBLAS, cuRAND and NVRTC of CUDA 13. The libraries may
# lie in the loader's path, under /usr/local/cuda, or in folders of REPRISE_CUDA_LIBRARIES, separated by colons.
set -euo pipefail
cd "$(dirname "$0")/.."
command=build
[ "${1:-}" = check ] && command=check
work=${CUDA_WORK:-$(scripts/target-dir.sh)/cuda}
python=${PYTHON:-python3}

[ "$(uname -sm)" = 'Linux x86_64' ] || { echo 'build-cuda: only for x86-64 Linux' >&2; exit 1; }
for program in cargo c++ ar readelf "$python"; do
  command -v "$program" >/dev/null || { echo "build-cuda: needs $program" >&2; exit 1; }
done
"$python" -m pip --version >/dev/null || { echo "build-cuda: needs pip for $python" >&2; exit 1; }
mkdir -p "$work"
work=$(cd "$work" && pwd)

# A driver refuses PTX of a compiler newer than itself. 13.0 is the oldest compiler with CUDA 13's libraries.
wanted='nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-cccl==13.0.85 nvidia-cuda-runtime==13.0.96'
if [ "$(cat "$work/compiler/installed" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$work/compiler"
  # shellcheck disable=SC2086 # a list of words
  "$python" -m pip install --quiet --no-deps --only-binary=:all: --no-compile --root-user-action=ignore \
    --target "$work/compiler" $wanted
  # Written last: this file marks a complete installation.
  echo "$wanted" >"$work/compiler/installed"
fi
compiler=$work/compiler/nvidia/cu13

# The toolkit folder for build scripts. Its lib64 has only static libraries, so the linker takes those. Stand-ins
# replace the CUDA libraries; the CUDA runtime and the C++ library are linked into the binary.
export CUDA_HOME=$work/home
rm -rf "$CUDA_HOME"
mkdir -p "$CUDA_HOME/lib64"
for part in bin include nvvm; do ln -s "$compiler/$part" "$CUDA_HOME/$part"; done
ln -s "$compiler/lib/libcudart_static.a" "$CUDA_HOME/lib64/libcudart.a"
ln -s "$(c++ -print-file-name=libstdc++.a)" "$CUDA_HOME/lib64/libstdc++.a"
declarations=$(cargo metadata --format-version 1 --features reprise/cuda --locked |
  "$python" -c 'import json, os, sys
packages = json.load(sys.stdin)["packages"]
print(next(os.path.dirname(it["manifest_path"]) for it in packages if it["name"] == "cudarc"))')
"$python" scripts/cuda-stand-ins.py "$declarations/src" "$CUDA_HOME/lib64"

unset CUDA_PATH CUDA_ROOT CUDA_TOOLKIT_ROOT_DIR NVCC_CCBIN
export NVCC=$CUDA_HOME/bin/nvcc CUDA_COMPUTE_CAP=${CUDA_COMPUTE_CAP:-80} CUDARC_CUDA_VERSION=13000
export PATH=$CUDA_HOME/bin:$PATH CARGO_TARGET_DIR=$work/target
cargo "$command" --release --locked --package reprise --bin reprise --features cuda
[ "$command" = check ] && exit

binary=$CARGO_TARGET_DIR/release/reprise
if readelf --dynamic "$binary" | grep -E 'NEEDED.*(cuda|cublas|curand|nvrtc)'; then
  echo 'build-cuda: the binary would not start without these libraries' >&2
  exit 1
fi
echo "built $binary"
