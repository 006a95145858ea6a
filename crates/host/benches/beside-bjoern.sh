#!/bin/sh
# CPU per request of the Lua host beside bjoern, interleaved: one process each on core 0,
# 50 connections of wrk from core 1, an answer of 11 bytes.
#
#   cargo build --release -p prony-host --example serve
#   python3 -m venv /tmp/bj && /tmp/bj/bin/pip install bjoern==3.2.2     (needs libev)
#   crates/host/benches/beside-bjoern.sh target/release/examples/serve /tmp/bj/bin/python3 [ROUNDS [SECONDS]]
set -eu
serve=$(realpath "$1"); python=$2; rounds=${3:-5}; seconds=${4:-3}
dir=$(mktemp -d)
cat > "$dir/hello.lua" <<'LUA'
local function app(environ, start_response)
  start_response("200 OK", {{"Content-Type", "text/plain"}})
  return {"hello world"}
end
return {app = app}
LUA
cat > "$dir/hello.py" <<'PY'
import bjoern, socket
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello world"]
sock = socket.socket()
sock.bind(("127.0.0.1", 0))
sock.listen(1024)
print("listening on http://127.0.0.1:%d" % sock.getsockname()[1], flush=True)
bjoern.server_run(sock, app)
PY
taskset -c 0 "$serve" hello:app 0 --workers 0 --path "$dir" > "$dir/lua" & lua=$!
taskset -c 0 "$python" "$dir/hello.py" > "$dir/bjoern" & bjoern=$!
trap 'kill $lua $bjoern; rm -r "$dir"' EXIT
for name in lua bjoern; do
  until grep -q http "$dir/$name"; do kill -0 $lua; kill -0 $bjoern; sleep 0.1; done
done
cpu() { cat /proc/"$1"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f\n", sum }'; }
measure() {
  url=$(grep -o 'http://[0-9.:]*' "$dir/$1")
  before=$(cpu "$2")
  count=$(taskset -c 1 wrk -t1 -c50 -d"$seconds" "$url/" | awk '/requests in/ { print $1 }')
  echo "$1 $(( ($(cpu "$2") - before) / count )) ns of CPU per request, $count requests"
}
for _ in $(seq "$rounds"); do measure lua $lua; measure bjoern $bjoern; done
