#!/bin/sh
# Fills in haproxy.cfg.template and becomes HAProxy: start.sh DIR WORK HOST PORT THREADS UPSTREAMS
set -eu
dir=$1 work=$2 host=$3 port=$4 threads=$5 upstreams=$6

# HAProxy wants two descriptors for each connection and some of its own, and does not start with fewer.
ulimit -n "$(ulimit -H -n)"
connections=20480
limit=$(ulimit -n)
if [ "$limit" != unlimited ] && [ "$limit" -lt 41200 ]; then connections=$(((limit - 200) / 2)); fi

# HOST:PORT,HOST:PORT becomes a line for each.
servers=
number=0
for upstream in $(printf '%s' "$upstreams" | tr ',' ' '); do
    servers="$servers    server instance$number $upstream\\n"
    number=$((number + 1))
done

sed -e "s|@HOST@|$host|" -e "s|@PORT@|$port|" -e "s|@THREADS@|$threads|" -e "s|@CONNECTIONS@|$connections|" \
    -e "s|@SERVERS@|${servers%\\n}|" "$dir/haproxy.cfg.template" > "$work/haproxy.cfg"
exec haproxy -db -q -f "$work/haproxy.cfg"
