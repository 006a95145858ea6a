#!/bin/sh
# Fills in lighttpd.conf.template, makes the pages and becomes lighttpd: start.sh DIR WORK HOST PORT THREADS PAYLOAD_BYTES
set -eu
dir=$1 work=$2 host=$3 port=$4 threads=$5 payload_bytes=$6

# One process may have to hold every connection, each with a file. lighttpd allocates a table for them at its start, so
# no more than is needed.
ulimit -n "$(ulimit -H -n)"
connections=20480
limit=$(ulimit -n)
if [ "$limit" = unlimited ] || [ "$limit" -gt $((2 * connections)) ]; then limit=$((2 * connections)); fi
if [ "$limit" -lt $((2 * connections)) ]; then connections=$((limit / 2)); fi

# 0: it serves by itself; otherwise it watches over so many workers.
workers=$threads
if [ "$threads" = 1 ]; then workers=0; fi

sed -e "s|@WORK@|$work|g" -e "s|@HOST@|$host|" -e "s|@PORT@|$port|" -e "s|@WORKERS@|$workers|" \
    -e "s|@FDS@|$limit|" -e "s|@CONNECTIONS@|$connections|" "$dir/lighttpd.conf.template" > "$work/lighttpd.conf"

mkdir -p "$work/pages"
printf 'Hello, World!' > "$work/pages/hello"
cat > "$work/pages/hello_world.html" <<'END'
<html>
  <head>
    <title>Hello World</title>
  </head>
  <body>
    <h1>Hello world!</h1>
  </body>
</html>
END
# A file without blocks takes no room on the disk. Once read, it is in the page cache like any other, and that is where
# everything is sent from.
if [ "$payload_bytes" -gt 0 ]; then
    truncate -s "$payload_bytes" "$work/pages/testpayload"
    cat "$work/pages/testpayload" > /dev/null
fi
exec lighttpd -D -f "$work/lighttpd.conf"
