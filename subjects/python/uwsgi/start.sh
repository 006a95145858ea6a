#!/bin/sh
# Becomes uwsgi: start.sh BUILD HOST PORT WORKERS [--backlog N]
set -eu
build=$1 host=$2 port=$3 workers=$4
shift 4

# uWSGI does not start with a longer queue than the kernel lets it have.
backlog=$(cat /proc/sys/net/core/somaxconn)
if [ "${1-}" = --backlog ] && [ "$2" -lt "$backlog" ]; then backlog=$2; fi

# The settings that its page "Things to know" recommends, without the log of requests. `http11-socket` would keep
# connections, but a process answers one connection at a time: all others would wait until that one is closed. With
# `http`, a process of its own keeps connections and passes requests on, which costs more than it saves. SIGTERM would
# start it anew if `die-on-term` were not there.
exec "$build/venv/bin/uwsgi" --http-socket "$host:$port" --add-header "Connection: close" --listen "$backlog" \
    --master --processes "$workers" --chdir "$build" --module app:app \
    --strict --single-interpreter --need-app --die-on-term --worker-reload-mercy 3 --disable-logging
