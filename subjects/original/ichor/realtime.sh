#!/bin/sh
# realtime.sh PROGRAM COUNT
#
# Runs Ichor's realtime example as it is, and says what it printed as the line of JSON that Prony reads: shortest, longest and mean run in
# microseconds, and each run of more than 500, of which those of more than 2 ms have missed the deadline of this work. It tells the
# length of no other run, so that there is no histogram, and no time of the whole: that is the mean times the number of runs.
set -eu
if [ "$2" != 5000 ]; then
    echo "realtime.sh: the job is done 5000 times, not $2" >&2
    exit 2
fi
said=$(LD_PRELOAD="$NO_SMT" "$1")
echo "$said" >&2
echo "$said" | awk '
/exceeded maximum/ {
    gsub(/[,.]/, "")
    if ($6 > 2000) { missed = missed (count++ ? "," : "") sprintf("{\"run\":%d,\"ns\":%d000}", $4, $6) }
}
/^duration min/ {
    gsub(/[,.]/, "")
    split($3, of, "/")
    printf "{\"measure\":\"runs\",\"threads\":1,\"count\":5000,\"elapsed_ns\":%d000,\"bytes\":0,\"checksum\":\"\",", of[3] * 5000
    printf "\"durations\":{\"count\":5000,\"min_ns\":%d000,\"mean_ns\":%d000,\"max_ns\":%d000,\"deadline_ns\":2000000,", of[1], of[3], of[2]
    printf "\"missed\":[%s],\"missed_count\":%d,\"histogram\":{\"schema\":1,\"unit\":\"ns\",\"digits\":3,\"counts\":[]}}}\n", missed, count
    told = 1
}
END { exit !told }'
