#!/bin/sh
# Builds both variants into the folder $1: coroutines-on with the hardening of a cautious distribution, coroutines-off
# with none of it. -O3 -DNDEBUG; no -march, so that the binary runs elsewhere too.
set -eu
cd "$(dirname "$0")"
out=$1
sources="main.cpp works.cpp realtime.cpp manager.cpp"
common="-std=c++20 -O3 -DNDEBUG -Wall -Wextra -pthread"
on="-DHARDENED -D_GLIBCXX_ASSERTIONS -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong
    -fstack-clash-protection -fcf-protection=full -fPIE -pie -Wl,-z,relro,-z,now,-z,noexecstack"
off="-U_FORTIFY_SOURCE -fno-stack-protector -fno-stack-clash-protection -fcf-protection=none -fno-PIE -no-pie
    -Wl,-z,norelro,-z,lazy"
# The flags are lists of words.
# shellcheck disable=SC2086
g++ $common $on -o "$out/coroutines-on" $sources &
first=$!
# shellcheck disable=SC2086
g++ $common $off -o "$out/coroutines-off" $sources &
second=$!
wait "$first"
wait "$second"
