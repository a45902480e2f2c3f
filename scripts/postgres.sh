#!/usr/bin/env bash
# A private PostgreSQL server for tests, on a unix socket in a folder of its own. It trusts whoever may enter that
# folder, and survives no power cut: it is for data that nobody misses.
#
#   postgres.sh find           prints the folder of initdb and pg_ctl
#   postgres.sh start FOLDER   starts one in FOLDER, which must exist and be empty, and prints its URL
#   postgres.sh stop FOLDER    stops it
set -euo pipefail

# The newest server: on the PATH, or where Debian and Homebrew hide it.
find_server() {
  local found
  found=$(ls -d /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin \
    /usr/pgsql-*/bin 2>/dev/null | sort -V | tail -n 1) || true
  if [ -n "$found" ] && [ -x "$found/initdb" ] && [ -x "$found/pg_ctl" ]; then
    echo "$found"
  elif command -v initdb >/dev/null && command -v pg_ctl >/dev/null; then
    dirname "$(command -v pg_ctl)"
  else
    return 1
  fi
}

# PostgreSQL refuses to run as root: then it runs as whom its package made, or as nobody.
unprivileged() {
  if [ "$(id -u)" != 0 ]; then
    "$@"
    return
  fi
  local user=nobody
  ! id postgres >/dev/null 2>&1 || user=postgres
  if command -v runuser >/dev/null; then
    runuser -u "$user" -- "$@"
  else
    su -s /bin/sh "$user" -c "$(printf '%q ' "$@")"
  fi
}

start() {
  local folder=$1 bin
  chmod 700 "$folder"
  bin=$(find_server)
  if [ "$(id -u)" = 0 ]; then
    ! id postgres >/dev/null 2>&1 || chown postgres "$folder"
    id postgres >/dev/null 2>&1 || chown nobody "$folder"
  fi
  cd /
  unprivileged "$bin/initdb" -D "$folder/data" -U reprise -A trust -E UTF8 --locale=C -N >"$folder.log" 2>&1
  unprivileged "$bin/pg_ctl" -D "$folder/data" -w -t 60 -l "$folder/server.log" \
    -o "-k $folder -h '' -c fsync=off -c full_page_writes=off -c max_connections=300" start \
    </dev/null >>"$folder.log" 2>&1
  rm -f "$folder.log"
  echo "postgres://reprise@localhost/postgres?host=$folder"
}

case ${1:-} in
  find) find_server ;;
  start) start "$2" ;;
  stop)
    bin=$(find_server)
    cd /
    unprivileged "$bin/pg_ctl" -D "$2/data" -m immediate -w stop >/dev/null 2>&1
    ;;
  *)
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
