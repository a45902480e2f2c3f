#!/usr/bin/env bash
# Installs missing programs with the system's package manager if allowed. Otherwise prints what to install.
#
#   setup.sh demo   for building and serving: Rust, a C compiler, ffmpeg
#   setup.sh test   also to read text on screen: Tesseract with English; and for tests: a PostgreSQL server, Chromium
#                   with its driver, promtool, vector engines in a Python environment, and Node.js with npm and Python
#                   packages that check the OpenAPI file.
#                   Tests that need a missing one are skipped.
#   setup.sh all    like test, but fails if something is still missing
#
# Quick and silent if nothing is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:-all}
# Downloads go to .tools; the Makefile adds it to the PATH of every target.
PATH=$PATH:$PWD/.tools

have() { command -v "$1" >/dev/null 2>&1; }

# Looks on the PATH and in the folders of common distributions, as the tests do.
has_postgres() {
  have initdb && return
  local place
  for place in '/usr/lib/postgresql/*/bin' '/usr/pgsql-*/bin' '/opt/homebrew/opt/postgresql*/bin' \
    '/usr/local/opt/postgresql*/bin'; do
    compgen -G "$place/initdb" >/dev/null && return
  done
  return 1
}

# Prints what is missing: cc, ffmpeg, tesseract, postgres, chromium, promtool, python, node, curl.
missing() {
  have cc || echo cc
  if ! have ffmpeg || ! have ffprobe; then echo ffmpeg; fi
  if [ "$purpose" != demo ]; then
    tesseract --list-langs 2>&1 | grep -qx eng || echo tesseract
    has_postgres || echo postgres
    if ! have chromium || ! have chromedriver; then echo chromium; fi
    have promtool || echo promtool
    python3 -c 'import ensurepip, venv' 2>/dev/null || echo python
    if ! have node || ! have npm; then echo node; fi
    have curl || echo curl
  fi
}

# Prints the packages of one of these, for a package manager.
packages() {
  case "$1 $2" in
    'apt cc') echo gcc libc6-dev ;;
    'apt ffmpeg' | 'pacman ffmpeg' | 'apk ffmpeg' | 'brew ffmpeg') echo ffmpeg ;;
    'apt tesseract') echo tesseract-ocr tesseract-ocr-eng ;;
    'dnf tesseract') echo tesseract tesseract-langpack-eng ;;
    'pacman tesseract') echo tesseract tesseract-data-eng ;;
    'apk tesseract') echo tesseract-ocr tesseract-ocr-data-eng ;;
    'brew tesseract') echo tesseract ;;
    'apt postgres' | 'pacman postgres' | 'apk postgres') echo postgresql ;;
    'apt chromium') echo chromium chromium-driver ;;
    'apt promtool' | 'pacman promtool' | 'apk promtool' | 'brew promtool') echo prometheus ;;
    'dnf promtool') echo golang-github-prometheus ;;
    'apt python') echo python3 python3-venv ;;
    'dnf python' | 'apk python' | 'brew python') echo python3 ;;
    'pacman python') echo python ;;
    'apt node' | 'dnf node' | 'pacman node' | 'apk node') echo nodejs npm ;;
    'brew node') echo node ;;
    'apt curl' | 'dnf curl' | 'pacman curl' | 'apk curl' | 'brew curl') echo curl ;;
    'dnf cc') echo gcc ;;
    'dnf ffmpeg') echo ffmpeg-free ;;
    'dnf postgres') echo postgresql-server ;;
    'dnf chromium') echo chromium chromedriver ;;
    'pacman cc') echo gcc ;;
    'pacman chromium') echo chromium ;; # with its driver
    'apk cc') echo gcc musl-dev ;;
    'apk chromium') echo chromium chromium-chromedriver ;;
    'brew postgres') echo postgresql@17 ;;
    'brew chromium') echo chromedriver ;;
  esac
}

manager() {
  local name
  for name in apt-get dnf pacman apk brew; do
    if have "$name"; then
      echo "${name%-get}"
      return
    fi
  done
}

# Runs a command as root: directly for root and brew, otherwise with sudo; fails if sudo needs a password.
as_root() {
  if [ "$manager" = brew ] || [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo -n "$@"
  fi
}

may_install() {
  [ -n "$manager" ] || return 1
  [ "$manager" = brew ] || [ "$(id -u)" = 0 ] || { have sudo && sudo -n true 2>/dev/null; }
}

install() {
  case $manager in
    apt)
      # Installing a package must not start a server: this policy forbids it.
      local policy=/usr/sbin/policy-rc.d made=
      if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        as_root chmod 755 "$policy"
        made=1
      fi
      local status=0
      as_root apt-get update -q &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" ||
        status=$?
      [ -z "$made" ] || as_root rm -f "$policy"
      return $status
      ;;
    dnf) as_root dnf install -y -q "$@" ;;
    pacman) as_root pacman -Sy --noconfirm --needed "$@" ;;
    apk) as_root apk add --no-cache "$@" ;;
    brew) brew install "$@" ;;
  esac
}

command_line() {
  case $manager in
    apt) echo "sudo apt-get update && sudo apt-get install $*" ;;
    dnf) echo "sudo dnf install $*" ;;
    pacman) echo "sudo pacman -S $*" ;;
    apk) echo "sudo apk add $*" ;;
    brew) echo "brew install $*" ;;
  esac
}

if ! have cargo; then
  echo 'setup: Rust is missing; install it from https://rustup.rs and run this again' >&2
  exit 1
fi
# Without them their tests are skipped.
install_tools() {
  [ "$purpose" = demo ] && return
  local status=0
  scripts/engines.sh >/dev/null || status=1
  scripts/contract.sh >/dev/null || status=1
  [ $status = 0 ] || [ "$purpose" != all ]
}

wanted=$(missing)
if [ -z "$wanted" ]; then
  install_tools
  exit
fi

manager=$(manager)
list=()
for thing in $wanted; do
  read -ra names <<<"$(packages "$manager" "$thing")"
  list+=(${names[@]+"${names[@]}"})
done
if [ ${#list[@]} -gt 0 ] && may_install; then
  echo "setup: installing ${list[*]}"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  # One after the other if not together: one that a distribution lacks must not keep the others away.
  install "${list[@]}" </dev/null >"$log" 2>&1 ||
    for package in "${list[@]}"; do install "$package" </dev/null >>"$log" 2>&1 || true; done
  # What the package manager said matters only if something is still missing.
  [ -z "$(missing)" ] || cat "$log" >&2
fi
if [[ $(missing) == *ffmpeg* ]] && ! may_install && have cc; then
  echo 'setup: no package manager may be used; downloading ffmpeg to .tools'
  cargo run -p reprise-encoders --features download-ffmpeg --example fetch_ffmpeg .tools </dev/null || true
  echo 'setup: make finds it there; to run reprise by yourself, put .tools on your PATH'
fi

still=$(missing)
if [ -z "$still" ]; then
  install_tools
  exit
fi
[[ $still == *python* || $still == *node* ]] || install_tools || true
fatal=
for thing in $still; do
  case $thing in
    cc) what='a C compiler (cc)' fatal=1 ;;
    ffmpeg) what='ffmpeg and ffprobe' fatal=1 ;;
    tesseract) what='tesseract with English, to read text on screen' ;;
    postgres) what='a PostgreSQL server (initdb and postgres), for tests only' ;;
    chromium) what='chromium and chromedriver, for tests of the page only' ;;
    promtool) what='promtool (comes with Prometheus), for tests of the metrics only' ;;
    python) what='python3 with venv, for tests of pgvector, Milvus and the contract only' ;;
    node) what='node and npm, for tests of the contract only' ;;
    curl) what='curl, for tests of the contract only' ;;
  esac
  names=$(packages "$manager" "$thing")
  [ "$manager $thing" != 'brew cc' ] || hint='xcode-select --install'
  [ -z "$names" ] || hint=$(command_line $names)
  echo "setup: missing: $what${hint:+; to install: $hint}" >&2
  hint=
done
[ "$purpose" = all ] && exit 1
[ -z "$fatal" ]
