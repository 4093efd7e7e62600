#!/usr/bin/env bash
# A private PostgreSQL for tests, reached by a socket in its own folder alone: postgres.sh start|stop FOLDER, and
# postgres.sh database FOLDER NAME [TEMPLATE]: a new database, or a copy of one that nobody uses. Prints the address. As root it runs as the user postgres: it refuses to be root.
set -euo pipefail
bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
if [[ -z $bin ]]; then
  echo 'PostgreSQL is not installed' >&2
  exit 69
fi
folder=$(realpath -m "$2")
as=()
if ((EUID == 0)); then as=(setpriv --reuid=postgres --regid=postgres --clear-groups env HOME="$folder"); fi
url() { echo "postgresql:///$1?host=${folder//\//%2F}&user=stepfleet"; }
case $1 in
start)
  # The server lives longer than this script: a lock that a caller holds by an open file would, too.
  for descriptor in "/proc/$$/fd"/*; do
    descriptor=${descriptor##*/}
    if ((descriptor > 2 && descriptor != 255)); then eval "exec $descriptor>&-"; fi
  done
  mkdir -p "$folder"
  if ((EUID == 0)); then chown postgres "$folder"; fi
  "${as[@]}" "$bin/initdb" --auth=trust --username=stepfleet --encoding=UTF8 --locale=C -D "$folder/data" >/dev/null
  # The socket's folder is the only way in. As durable as it is made for.
  "${as[@]}" "$bin/pg_ctl" -D "$folder/data" -l "$folder/log" -w -t 200 -o "-k $folder -c listen_addresses='' -c max_connections=500" \
    start >/dev/null
  url postgres
  ;;
database)
  psql -q "$(url postgres)" -c "CREATE DATABASE $3${4:+ TEMPLATE $4}"
  url "$3"
  ;;
stop) "${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null ;;
esac
