"""What the generator costs beside others: turns of a second each, one after the other, again and again."""

import os
import re
import shutil
import statistics

from instruments import PRONY, TOOLS, Broken, Responder, Skipped, prony_load, run_client, time_of
from rows import Figure, row

PAIRS = 10
TURN = "1s"


def turns(server, ours, theirs, pairs=PAIRS, **how):
    """Both clients in turn; of each pair, what `ours` and `theirs` return. Who begins changes with each pair."""
    found = []
    for pair in range(pairs):
        first, second = (ours, theirs) if pair % 2 == 0 else (theirs, ours)
        a, b = first(server, **how), second(server, **how)
        found.append((a, b) if pair % 2 == 0 else (b, a))
    return found


def cpu_of(words, **how):
    """A client's CPU in ns a request that the server received while it ran."""
    def turn(server):
        before = server.count()["requests"]
        ended = run_client([*words, *how.get("url", [server.url])], watch_memory=how.get("watch_memory", False))
        if ended.status != 0:
            raise Broken(f"{words[0]} ended with {ended.status}: {ended.errors.strip()} {ended.out.strip()}")
        requests = server.count()["requests"] - before
        if requests == 0:
            raise Broken(f"{words[0]} sent nothing")
        return ended.cpu_ns / requests, ended
    return turn


def beside(pairs, names, limit, must):
    """The median of the pairs' own ratios, with both medians. What system calls cost on a machine moves it: beyond `must` it
    is not the machine."""
    ratios = [ours[0] / theirs[0] for ours, theirs in pairs]
    ratio = statistics.median(ratios)
    own, other = (statistics.median(side[0] for side in sides) for sides in zip(*pairs))
    return Figure(f"{names[0]} {time_of(own)} beside {names[1]} {time_of(other)}, CPU a request",
                  f"{ratio:.3f} ({min(ratios):.3f}–{max(ratios):.3f}, {len(ratios)} pairs)", f"≤ {limit}", ratio <= limit,
                  ratio <= must, f"≤ {must}")


def prony(connections, *words):
    return [PRONY, "load", "-t", 1, "-c", connections, "-d", TURN, *words]


def wrk(connections, *words):
    if not shutil.which("wrk"):
        raise Skipped("needs wrk: apt-get install wrk")
    return ["wrk", "-t1", f"-c{connections}", f"-d{TURN}", *words]


def start_cost(words):
    """Median CPU of a run of one request, in ns."""
    return statistics.median(run_client(words).cpu_ns for _ in range(9))


@row("speed/yardstick", 28)
def one_connection(_):
    def without(start_ns, turn):
        def less(server):
            before = server.count()["requests"]
            _, ended = turn(server)
            return (ended.cpu_ns - start_ns) / (server.count()["requests"] - before), ended
        return less

    with Responder("--busy") as server:
        yardstick, address = [os.path.join(TOOLS, "yardstick"), "-d", 1000], ["127.0.0.1", server.port]
        own_start = start_cost([PRONY, "load", "-t", 1, "-c", 1, "-n", 1, server.url])
        start = start_cost([*yardstick, "-n", 1, *address])
        pairs = turns(server, without(own_start, cpu_of(prony(1))), without(start, cpu_of(yardstick, url=address)))
    yield Figure("CPU of a run of one request, ours and the yardstick's", f"{time_of(own_start)}, {time_of(start)}", "taken off")
    yield beside(pairs, ("one connection", "a client that parses nothing"), 1.06, 1.3)


@row("speed/enters", 3)
def system_calls(folder):
    if not shutil.which("strace"):
        raise Skipped("needs strace: apt-get install strace")
    listed = os.path.join(folder, "strace")
    with Responder("--busy") as server:
        ended = run_client(["strace", "-f", "-c", "-o", listed, *prony(1, "-n", 5000), server.url])
        received = server.count()["requests"]
    if ended.status != 0:
        raise Broken(f"strace: {ended.errors.strip()}")
    with open(listed) as table:
        calls = {line.split()[-1]: int(line.split()[3]) for line in table if re.match(r"\s*[\d.]+ ", line) and "total" not in line}
    enters = calls.get("io_uring_enter", 0)
    if enters == 0:
        raise Skipped("io_uring is not to be had here")
    yield Figure("io_uring_enter a request, one connection", f"{enters / received:.3f}", "≤ 1.1", enters / received <= 1.1)


for number in (10, 100, 400, 10_000):
    @row(f"speed/wrk-{number}", 25 if number < 10_000 else 60)
    def beside_wrk(_, number=number):
        with Responder("--busy") as server:
            pairs = turns(server, cpu_of(prony(number)), cpu_of(wrk(number)))
        yield beside(pairs, (f"{number} connections", "wrk"), 0.72, 1.0)


@row("speed/memory", 8)
def memory(_):
    with Responder() as server:
        peaks = [cpu_of(words, watch_memory=True)(server)[1].memory_peak / 2**20
                 for words in (prony(10_000), wrk(10_000))]
    yield Figure(f"peak memory, 10,000 connections (wrk {peaks[1]:.1f} MiB)", f"{peaks[0]:.1f} MiB", "≤ 40 MiB", peaks[0] <= 40)


@row("speed/open", 30)
def open_loop(folder):
    """Half of capacity, by a schedule and by think time."""
    connections = 100
    with Responder("--busy") as server:
        capacity = prony_load(folder, server.url, "-c", connections, "-d", TURN).report
        rate = round(capacity["rate_per_s"] / 2)
        scheduled = prony(connections, "--rate", rate)
        # So long between two requests of each connection, of which its answer takes some.
        think_ns = connections / rate * 1e9
        probe = prony_load(folder, server.url, "-c", connections, "-d", TURN, "--think", f"{think_ns / 1000:.0f}us").report
        think_ns -= probe["latency_ns"]["mean"]
        thinking = prony(connections, "--think", f"{think_ns / 1000:.0f}us")
        pairs = turns(server, cpu_of(scheduled), cpu_of(thinking))
    yield Figure("rate", f"{rate}/s of {capacity['rate_per_s']:.0f}/s")
    yield beside(pairs, ("open loop at half of capacity", "--think"), 1.1, 1.5)


@row("speed/spin", 25)
def spinning(folder):
    def ours(server):
        return prony_load(folder, server.url, "-c", 1, "-d", TURN, "--spin").report["latency_ns"]["p50"], None

    def theirs(server):
        ended = run_client([*wrk(1, "--latency"), server.url])
        found = re.search(r"50%\s+([\d.]+)(us|ms)", ended.out)
        if not found:
            raise Broken(f"wrk: {ended.out} {ended.errors}")
        return float(found[1]) * {"us": 1e3, "ms": 1e6}[found[2]], None

    for words in (["--busy"], []):
        with Responder(*words) as server:
            figure = beside(turns(server, ours, theirs, PAIRS if words else 3), ("one connection, spinning,", "wrk"), 0.4, 0.6)
        figure.what = figure.what.replace("CPU a request", "p50" + (", of a server that spins, too" if words else ", of one that sleeps"))
        yield figure if words else Figure(figure.what, figure.shown)
