#!/bin/sh
# Fills in nginx.conf.template and becomes OpenResty's nginx: start.sh DIR WORK HOST PORT THREADS [--backlog N]
set -eu
dir=$1 work=$2 host=$3 port=$4 threads=$5
shift 5
backlog=65535
if [ "${1-}" = --backlog ]; then backlog=$2; fi

# One worker may have to hold every connection. nginx allocates the table at start, so no more than is
# needed, and it warns where the table is larger than the limit on open files.
ulimit -n "$(ulimit -H -n)"
connections=20480
limit=$(ulimit -n)
if [ "$limit" != unlimited ] && [ "$limit" -lt "$connections" ]; then connections=$limit; fi

# As root, workers stay root: in a user namespace with one user there is no other to change to, and what is
# measured does not depend on it. Otherwise nginx has no user to change, and would warn about the directive.
user=
if [ "$(id -u)" = 0 ]; then user="user $(id -un) $(id -gn);"; fi

sed -e "s|@USER@|$user|" -e "s|@DIR@|$dir|" -e "s|@WORK@|$work|g" -e "s|@HOST@|$host|" -e "s|@PORT@|$port|" \
    -e "s|@THREADS@|$threads|" -e "s|@BACKLOG@|$backlog|" -e "s|@CONNECTIONS@|$connections|" \
    "$dir/nginx.conf.template" > "$work/nginx.conf"
mkdir -p "$work/temp"
exec openresty -e stderr -p "$work" -c "$work/nginx.conf"
