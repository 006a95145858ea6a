#!/bin/sh
# Becomes prony serve: start.sh PRONY HOST PORT THREADS PAYLOAD_BYTES
set -eu
prony=$1 host=$2 port=$3 threads=$4 payload_bytes=$5
set -- serve --host "$host" --port "$port" --threads "$threads"
if [ "$payload_bytes" -gt 0 ]; then set -- "$@" --payload "$payload_bytes"; fi
exec "$prony" "$@"
