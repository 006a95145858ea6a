#!/bin/sh
# run.sh PROGRAMS HARDENING WORK COUNT THREADS [--injection explicit|constructor] [--order any|ordered] [--quit same|last]
#
# Runs one of Ichor's benchmarks as it is, and says what it printed as the line of JSON that Prony reads. On one thread a
# benchmark is asked for its first part alone; its second part, on eight threads, it does after the first. Of starting, each
# injection has a process of its own: what one takes in memory is not the other's.
set -eu
programs=$1 hardening=$2 work=$3 count=$4 threads=$5
shift 5
injection=explicit order=any quit=same
while [ $# -gt 1 ]; do
    case $1 in
    --injection) injection=$2 ;;
    --order) order=$2 ;;
    --quit) quit=$2 ;;
    *) break ;;
    esac
    shift 2
done
if [ $# -gt 0 ]; then
    echo "run.sh: unknown word: $1" >&2
    exit 2
fi

# What it calls its parts, and how the numbers of ours are called.
line=" ran for" option= message_bytes=0
case $work in
coroutine) size=5000000 program=coroutine measure=coroutines ;;
# Not "events": most of them are never dispatched.
event) size=5000000 program=event measure="events pushed" ;;
start)
    size=10000 program=start measure=services
    case $injection in
    explicit) line=" advanced injection ran for" option=--advanced ;;
    constructor) line=" constructor injection ran for" option=--constructor ;;
    *) echo "run.sh: no injection \`$injection\`" >&2; exit 2 ;;
    esac
    ;;
start-stop) size=1000000 program=start_stop measure=cycles ;;
# The length of its message follows from the MB/s that it prints: 30 bytes of JSON, and a NUL.
serializer) size=5000000 program=serializer measure=messages line=" glaze ran for" message_bytes=31 ;;
event-seen) exec "$programs/seen" "$count" "$threads" "$order" "$quit" ;;
realtime) exec "${0%/*}/realtime.sh" "$programs/realtime" "$count" ;;
start-sized) exec "$programs/sizes" start "$count" ;;
start-stop-sized) exec "$programs/sizes" start-stop "$count" ;;
*) echo "run.sh: no work \`$work\`" >&2; exit 2 ;;
esac
if [ "$count" != "$size" ]; then
    echo "run.sh: $work is done $size times, not $count" >&2
    exit 2
fi
case $threads in
1) part=single flag=--single ;;
8) part=multi flag= ;;
*) echo "run.sh: the benchmarks run on 1 thread and on 8, not on $threads" >&2; exit 2 ;;
esac
said=$("$programs/$hardening/ichor_${program}_benchmark" $flag $option)
echo "$said" >&2
us=$(echo "$said" | sed -n "s/.* $part threaded$line \([0-9,.]*\) .*/\1/p" | tr -d ',.')
if [ -z "$us" ]; then
    echo "run.sh: no line of the $part threaded part" >&2
    exit 1
fi
echo "{\"measure\":\"$measure\",\"threads\":$threads,\"count\":$((size * threads)),\"elapsed_ns\":${us}000,\"bytes\":$((message_bytes * size * threads)),\"checksum\":\"\"}"
