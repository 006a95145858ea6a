#!/bin/sh
# nginx.sh WORK HOST PORT THREADS [CACHE]: becomes an nginx that serves the files of ./static, beside this script, at /static/; with a CACHE, an
# `open_file_cache` of that many files.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$1 host=$2 port=$3 threads=$4
cache=
if [ $# -gt 4 ]; then cache="open_file_cache max=$5; open_file_cache_valid 1s;"; fi
# As root, workers stay root: in a user namespace with one user there is no other to change to. Otherwise nginx has no user
# to change, and would warn about the directive.
user=
if [ "$(id -u)" = 0 ]; then user="user $(id -un) $(id -gn);"; fi
mkdir -p "$work/temp"
cat > "$work/nginx.conf" <<END
$user
worker_processes $threads;
daemon off;
pid $work/nginx.pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    # nginx would close a connection after 1,000 requests.
    keepalive_requests 1000000000;
    keepalive_time 24h;
    keepalive_timeout 75s;
    client_body_temp_path $work/temp/body;
    proxy_temp_path $work/temp/proxy;
    fastcgi_temp_path $work/temp/fastcgi;
    uwsgi_temp_path $work/temp/uwsgi;
    scgi_temp_path $work/temp/scgi;
    types { text/plain txt; }
    server {
        listen $host:$port reuseport backlog=65535;
        location /static/ {
            alias $here/static/;
            $cache
        }
    }
}
END
exec nginx -e stderr -p "$work" -c "$work/nginx.conf"
