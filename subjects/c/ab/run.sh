#!/bin/sh
# run.sh CONNECTIONS SECONDS URL: ab's report, and after it the percentiles that it writes to a file only.
set -eu
csv=$(mktemp)
trap 'rm -f "$csv"' EXIT
trap 'exit 143' TERM INT
# -t alone means 50,000 requests at the most, and an -n before it would be overruled.
# -l: an answer of another length is not a failure.
ab -q -k -l -c "$1" -t "$2" -n 10000000 -e "$csv" "$3"
while read -r line; do echo "$line"; done < "$csv"
