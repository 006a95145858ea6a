#!/bin/sh
# Fills in nginx.conf.template and becomes nginx:
# start.sh DIR WORK HOST PORT THREADS PAYLOAD_BYTES [PROTOCOL CERTIFICATE KEY]
set -eu
dir=$1 work=$2 host=$3 port=$4 threads=$5 payload_bytes=$6

# TLS as nginx has it: its usual ciphers, a cache of sessions that its workers share, and tickets.
protocol= tls=
case ${7-} in
https) protocol=ssl ;;
h2) protocol="ssl http2" ;;
esac
if [ -n "$protocol" ]; then
    tls="ssl_certificate $8; ssl_certificate_key $9; ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:tls:10m;"
fi

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

sed -e "s|@USER@|$user|" -e "s|@WORK@|$work|g" -e "s|@HOST@|$host|" -e "s|@PORT@|$port|" \
    -e "s|@THREADS@|$threads|" -e "s|@CONNECTIONS@|$connections|" \
    -e "s|@PROTOCOL@|$protocol|" -e "s|@TLS@|$tls|" \
    "$dir/nginx.conf.template" > "$work/nginx.conf"
mkdir -p "$work/temp" "$work/pages"
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
exec nginx -e stderr -p "$work" -c "$work/nginx.conf"
