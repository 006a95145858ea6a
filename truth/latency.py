"""Latency, request by request: what `prony load --trace` says beside a capture of the packets and the server's own times."""

import contextlib
import json
import math
import os
import subprocess
import time
from dataclasses import dataclass, field

from instruments import (
    CLIENT_CORE, ENDS_WITHIN_S, PRONY, ROOT, TOOLS, Broken, Load, Responder, Skipped, busy_loop, percentile, percentiles,
    prony_load, run_client, stopped_in_bursts, time_of, watched,
)
from rows import Figure, at_least_share, at_most, holds, row

US = 1_000
# Two readings of clocks and their relation are not more exact than this.
CLOCKS_NS = 250
# From the capture of a segment until the receiver could have it: the kernel's work between the two, which no reader of
# a socket can see. Only the upper end of an interval has this added.
DELIVERY_NS = 20 * US
# Part of the requests that are to lie in their own interval, and the part that must, on any machine: its interrupts are no
# figure of the generator.
SHARE_MIN = 0.999
SHARE_MUST = 0.98


@dataclass
class Judged:
    """Requests that both sides saw."""
    # By the trace, and by the packets: last byte of the answer less request.
    shown: list = field(default_factory=list)
    captured: list = field(default_factory=list)
    # Of each request: how much it says that it may be longer than the truth.
    bounds: list = field(default_factory=list)
    send_brackets: list = field(default_factory=list)
    # Request on the wire less intended.
    late: list = field(default_factory=list)
    # What is shown and not captured: handing over, and taking.
    handed: list = field(default_factory=list)
    taken: list = field(default_factory=list)
    # How often each order of moments was not kept.
    sent_early: int = 0
    sent_late: int = 0
    taken_early: int = 0
    taken_late: int = 0
    under_server: int = 0
    # Ports whose numbers of requests do not agree, and what that means.
    odd: list = field(default_factory=list)


def judge(trace, exchanges, served):
    """Joins by port and order. `served` may be None where the server kept no times."""
    own = Judged()
    for port, rows in trace.items():
        seen = exchanges.get(port, [])
        known = served[port] if served is not None else [(None, None)] * len(seen)
        if not len(rows) == len(seen) == len(known):
            own.odd.append(f"port {port}: trace {len(rows)}, capture {len(seen)}, server {len(known)}")
            continue
        for row_, wire, (received, answered) in zip(rows, seen, known):
            if row_["last_byte_ns"] is None or not wire.answer:
                continue
            judge_one(own, row_, wire, received, answered)
    return own


def judge_one(own, row_, wire, received, answered):
    submitted, last = row_["submitted_ns"], row_["last_byte_ns"]
    own.shown.append(last - submitted)
    own.captured.append(wire.answer - wire.request)
    own.bounds.append(row_["submitted_within_ns"] + row_["picked_up_within_ns"])
    own.send_brackets.append(row_["submitted_within_ns"])
    own.late.append(wire.request - row_["intended_ns"])
    own.handed.append(wire.request - submitted)
    own.taken.append(last - wire.answer)
    own.sent_early += wire.request < submitted - CLOCKS_NS
    own.sent_late += wire.request > submitted + row_["submitted_within_ns"] + CLOCKS_NS
    own.taken_early += last < wire.answer - CLOCKS_NS
    own.taken_late += last - row_["picked_up_within_ns"] > wire.answer + DELIVERY_NS + CLOCKS_NS
    if received is not None:
        own.under_server += last - submitted < answered - received or received < submitted or answered > last


def within_interval(own, delivery_ns):
    """Shares of requests that are not shorter than the capture says, and not longer than that and their bound."""
    both = list(zip(own.shown, own.captured, own.bounds))
    not_under = sum(shown >= captured - CLOCKS_NS for shown, captured, _ in both) / len(both)
    not_over = sum(shown <= captured + bound + delivery_ns + CLOCKS_NS for shown, captured, bound in both) / len(both)
    return not_under, not_over


def requests(own, kernel, exact=True):
    """Figures of a run, request by request."""
    yield Figure("requests in trace, capture and server's log", str(len(own.shown)), "> 0, all ports agree" +
                 "".join(f"; {odd}" for odd in own.odd[:2]), bool(own.shown) and not own.odd)
    if not own.shown:
        return
    # What the kernel stamps waits for no reader.
    delivery_ns = 0 if kernel else DELIVERY_NS
    not_under, not_over = within_interval(own, delivery_ns)
    count = len(own.shown)
    yield at_least_share("capture ≤ shown", not_under, 1.0)
    yield at_least_share("shown ≥ the server's own, its times inside of ours", 1 - own.under_server / count, 1.0)
    allowed = "" if kernel else f" + {DELIVERY_NS // US} µs of the kernel's delivery"
    yield at_least_share(f"shown ≤ capture + stated bound{allowed}", not_over, SHARE_MIN, SHARE_MUST)
    if not kernel:
        yield Figure("… without those", f"{100 * within_interval(own, 0)[1]:.6g} %")
    yield Figure("on the wire before its bracket, after it; answer before its interval, after it",
                 f"{own.sent_early}, {own.sent_late}; {own.taken_late}, {own.taken_early} of {count}")
    for what, values in (("stated bound", own.bounds), ("submitted to on the wire", own.handed), ("answer on the wire to taken", own.taken)):
        shown = ", ".join(time_of(percentile(sorted(values), q)) for q in (0.5, 0.99, 0.999))
        yield Figure(f"{what}: p50, p99, p99.9", shown)
    narrow = sum(width <= 20 * US for width in own.send_brackets) / count
    # A call that takes longer is told as that: there is nothing that must be.
    figure = at_least_share("brackets of sending ≤ 20 µs", narrow, SHARE_MIN, 0)
    yield figure if exact else Figure(figure.what, figure.shown)


def percentiles_agree(own, report, kernel):
    """The percentiles that are printed beside those of the capture."""
    truth = percentiles(own.captured)
    printed = report["latency_ns"]
    for name in ("p50", "p90", "p99", "p99_9"):
        figure = close(f"printed {name.replace('_', '.')} beside the capture's", printed[name], truth[name],
                       5 * US if kernel else 20 * US, 0.0 if kernel else 0.03)
        # A few requests while the machine had something else to do move these as far as they like.
        if name in ("p99", "p99_9") and not kernel:
            figure.is_sound, figure.must = True, ""
        yield figure


def close(what, value, truth, absolute_ns, relative):
    limit = max(absolute_ns, relative * truth, 0.001 * truth)
    reach = f"within {absolute_ns / US:g} µs" + (f" or {100 * relative:g} %" if relative else "")
    # What a machine takes to wake a thread is in it without the kernel's stamps: that is what they are for.
    loose = max(100 * US, 0.3 * truth)
    return Figure(f"{what}", f"{time_of(value)} beside {time_of(truth)} ({time_of(value - truth)})", reach,
                  abs(value - truth) <= limit, abs(value - truth) <= loose, "within 100 µs or 30 %")


def measure(folder, responder_words, load_words, kernel=False, real_time=False, **how):
    """One run of the generator against a server, and all that was seen of it."""
    with watched(folder, *responder_words, real_time=real_time) as (server, capture):
        stamps = ["--timestamps", "kernel" if kernel else "user", "--latency-from", "submitted"]
        load = prony_load(folder, server.url, *load_words, *stamps, trace=True, real_time=real_time, **how)
        counts = server.count()
        own = judge(load.trace(), capture.exchanges(), server.rows())
    if counts["requests"] != load.report["counts"]["sent"]:
        own.odd.append(f"server received {counts['requests']}, sent {load.report['counts']['sent']}")
    return own, load


def is_kernel(load):
    return Figure("receive times are from", load.report["timestamps"], "kernel", load.report["timestamps"] == "kernel")


def closed(name, connections, delay_us, kernel, spin=False):
    @row(name, 5)
    def run(folder):
        words = ["-c", connections, "-d", "2s", *(["--spin"] if spin else [])]
        own, load = measure(folder, ["--delay", delay_us], words, kernel, real_time=not spin)
        if kernel:
            yield is_kernel(load)
        yield from requests(own, kernel)
        if own.shown:
            yield from percentiles_agree(own, load.report, kernel)


for connections, delay_us in ((1, 300), (100, 5_000)):
    closed(f"latency/closed-{connections}", connections, delay_us, kernel=False)
    closed(f"latency/closed-{connections}-kernel", connections, delay_us, kernel=True)

closed("latency/closed-1-spin", 1, 300, kernel=False, spin=True)

OPEN_CONNECTIONS = 100
# A server of this much work a request, one at a time, has a capacity that a generator is not the limit of.
OPEN_SERVER = ["--serial", "--delay", 25]
capacity_found = {}


def capacity(folder):
    """Requests a second of the open rows' server with as many connections, in a closed loop; measured once."""
    if not capacity_found:
        with Responder(*OPEN_SERVER) as server:
            load = prony_load(folder, server.url, "-c", OPEN_CONNECTIONS, "-d", "1500ms")
        capacity_found["rate"] = load.report["rate_per_s"]
    return capacity_found["rate"]


def open_loop(name, percent, kernel):
    @row(name, 6)
    def run(folder):
        rate = capacity(folder) * percent / 100
        seconds = 2 if percent < 80 else 1.5
        words = ["-c", OPEN_CONNECTIONS, "-d", f"{round(seconds * 1000)}ms", "--rate", round(rate)]
        own, load = measure(folder, OPEN_SERVER, words, kernel, real_time=percent < 80, may_fail=True)
        yield Figure("rate", f"{load.report['rate_per_s']:.0f}/s of {capacity(folder):.0f}/s")
        if kernel:
            yield is_kernel(load)
        yield from requests(own, kernel, exact=percent < 80)
        if not own.shown:
            return
        if percent < 80:
            yield from percentiles_agree(own, load.report, kernel)
        else:
            yield from at_most_or_true(own, load, kernel)


def at_most_or_true(own, load, kernel):
    """Where the generator may be the limit: with the kernel's stamps still within 3 %, otherwise called at most."""
    truth, printed = percentiles(own.captured), load.report["latency_ns"]
    for name in ("p50", "p99"):
        if kernel:
            yield close(f"printed {name} beside the capture's", printed[name], truth[name], 5 * US, 0.03)
        else:
            yield Figure(f"printed {name} beside the capture's", f"{time_of(printed[name])} beside {time_of(truth[name])}")
    if not kernel:
        # A label is asked for where it would make a difference to who reads the figures.
        apart = any(abs(printed[name] - truth[name]) > max(20 * US, 0.03 * truth[name]) for name in ("p50", "p99"))
        yield holds("apart by more than 20 µs and 3 %: then called at most", load.report["delay"]["at_most"] or not apart,
                    f"{'apart' if apart else 'not apart'}, at_most = {load.report['delay']['at_most']}")


for percent in (10, 50, 80):
    open_loop(f"latency/open-{percent}", percent, kernel=False)
    open_loop(f"latency/open-{percent}-kernel", percent, kernel=True)


def disturbed(name, words, kernel, must_label, bursts=False):
    """A generator that has too little of its processor."""
    @row(name, 5)
    def run(folder):
        given = [word(folder) if callable(word) else word for word in words]
        with contextlib.ExitStack() as stack:
            how = {}
            if bursts:
                how["meanwhile"] = stopped_in_bursts(stop_s=0.01, go_s=0.09, bursts=12)
            else:
                stack.enter_context(busy_loop(CLIENT_CORE))
            own, load = measure(folder, OPEN_SERVER if "--rate" in words else [], given, kernel, may_fail=True, **how)
        if kernel:
            yield is_kernel(load)
        yield from requests(own, kernel, exact=False)
        if own.shown:
            yield from at_most_or_true(own, load, kernel)
            if must_label and not kernel:
                yield holds("called at most", load.report["delay"]["at_most"])


ten_percent = ["-c", OPEN_CONNECTIONS, "-d", "2s", "--rate", lambda folder: round(capacity(folder) / 10)]
for stamps, kernel in (("", False), ("-kernel", True)):
    disturbed("latency/saturated" + stamps, ["-c", 100, "-d", "1500ms"], kernel, must_label=True)
    disturbed("latency/slowed" + stamps, ten_percent, kernel, must_label=True)
    disturbed("latency/stopped" + stamps, ten_percent, kernel, must_label=True, bursts=True)


SLOWED = """
title = "A generator that has too little of its processor"
[run]
blocks = 1
warmup = "200ms"
duration = "1s"
[[subject]]
ref = "rust/prony"
[[workload]]
name = "hello"
request = { path = "/hello" }
connections = [10]
arrival = { rate = 2000 }
"""


@row("latency/finding", 8)
def finding(folder):
    """What a whole run says of a generator that shares its processor with another program, and of one that does not."""
    experiment = os.path.join(folder, "slowed.toml")
    with open(experiment, "w", encoding="utf-8") as file:
        file.write(SLOWED)
    for name, is_slowed in (("alone", False), ("slowed", True)):
        out = os.path.join(folder, name)
        with busy_loop(CLIENT_CORE) if is_slowed else contextlib.nullcontext():
            subprocess.run([PRONY, "run", experiment, "--out", out], check=True, capture_output=True, timeout=ENDS_WITHIN_S,
                           env={**os.environ, "PRONY_HOME": ROOT})
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
            found = sorted({one["code"] for one in json.load(file)["findings"]})
        if is_slowed:
            yield holds("a slowed generator is found out (P001)", "P001" in found, ", ".join(found))
        else:
            yield holds("one that is not is not (P001)", "P001" not in found, ", ".join(found) or "nothing found")


STEP_S = 0.08


def steps_of_the_clock(_):
    """Sets the wall clock forward and back, ten times each, and leaves it as it was."""
    for _ in range(10):
        for by in (STEP_S, -STEP_S):
            time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME) + by)
            time.sleep(0.08)


# Only where it is named: the clock that is set is everybody's.
@row("latency/clock", 3, always=False)
def clock(folder):
    """The kernel stamps what arrives by the wall clock, which is set now and then; the server's own times are not by that."""
    try:
        time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME))
    except PermissionError:
        raise Skipped("may not set the clock", "root") from None
    with Responder("--delay", 300, log=os.path.join(folder, "server.csv")) as server:
        load = prony_load(folder, server.url, "-c", 10, "-d", "2s", "--timestamps", "kernel", trace=True,
                          meanwhile=steps_of_the_clock)
        trace, served = load.trace(), server.rows()
    yield is_kernel(load)
    over = [row_["last_byte_ns"] - row_["submitted_ns"] - (answered - received)
            for port, rows in trace.items() for row_, (received, answered) in zip(rows, served[port])]
    yield Figure("requests", str(len(over)), "> 0", bool(over))
    yield holds("none is shorter than the server's own time", min(over) >= 0, time_of(min(over)))
    yield at_most("longest that one is longer, ms", max(over) / 1e6, STEP_S * 1e3 * 0.9)
    delay = load.report["delay"]
    yield Figure("with a stamp of the kernel", f"{delay['pick_up_exact']} of {load.report['completed']}")


@row("latency/lateness", 15)
def lateness(folder):
    """Request on the wire less the time that it was intended for."""
    for rate, spin in ((2_000, True), (20_000, True), (2_000, False), (20_000, False), (200_000, False)):
        words = ["-c", OPEN_CONNECTIONS, "-d", "1s" if rate < 200_000 else "500ms", "--rate", rate, *(["--spin"] if spin else [])]
        own, load = measure(folder, [], words, real_time=not spin and rate < 200_000, may_fail=True)
        how = f"{rate}/s{' --spin' if spin else ''}: "
        if not own.late:
            yield Figure(how + "requests", "; ".join(own.odd[:2]) or "none", "> 0", False)
            continue
        seen = percentile(sorted(own.late), 0.99)
        printed = load.report["delay"]["lateness_ns"]["p99"]
        if spin:
            yield at_most(how + "sent − intended, p99 by the capture, µs", seen / US, 50)
        waited = (load.report["delay"].get("slot_wait_ns") or {}).get("count", 0)
        figure = close(how + "lateness that is printed, p99, beside it", printed, seen, 20 * US, 0.03)
        # Where arrivals waited for a slot, what the capture sees is both.
        yield figure if waited * 100 < len(own.late) else Figure(figure.what, f"{figure.shown}; {waited} waited for a slot")


@row("latency/arrivals", 40)
def arrivals(folder):
    """Intended times: those of a Poisson process are what they must be, those of threads are spread evenly."""
    seeds = range(1, 21)
    found = []
    for seed in seeds:
        gaps, rate = intended_gaps(folder, 100_000, "--arrival", "poisson", "--seed", seed, "-d", "500ms")
        found.append([statistic * math.sqrt(len(gaps)) for statistic in poisson_statistics(gaps, rate)])
    # Each is exceeded by one of a hundred where nothing is wrong. Seeds are always the same: so is what comes out.
    for name, limit, values in zip(("Kolmogorov–Smirnov", "coefficient of variation", "lag-1 correlation"),
                                   (1.63, 2.576, 2.576), zip(*found)):
        passed = sum(abs(value) < limit for value in values)
        yield Figure(f"Poisson, {name}, 20 seeds of 50,000: not rejected at 1 % (worst {max(map(abs, values)):.2f} of {limit})",
                     f"{passed} of 20", "≥ 19", passed >= 19)
    gaps, rate = intended_gaps(folder, 10_000, "-d", "1s", threads=2)
    worst = max(abs(gap - 1e9 / rate) for gap in gaps)
    yield at_most("constant rate by two threads: gap less 1/rate, largest, µs", worst / US, 1)


def intended_gaps(folder, rate, *words, threads=1):
    """Gaps between intended times in ns, of all requests in the order of these."""
    with Responder() as server:
        load = prony_load(folder, server.url, "-c", 400, "--rate", rate, *words, trace=True, threads=threads, may_fail=True)
    times = sorted(row_["intended_ns"] for rows in load.trace().values() for row_ in rows)
    if load.report["arrivals"]["dropped"] or len(times) < 0.99 * load.report["arrivals"]["scheduled"]:
        raise Broken(f"the trace has {len(times)} of {load.report['arrivals']}")
    return [later - earlier for earlier, later in zip(times, times[1:])], rate


def poisson_statistics(gaps, rate):
    """Largest distance of the gaps' distribution from the exponential one; coefficient of variation less 1; correlation
    of neighbours. Times the root of their number each has a distribution that hangs on nothing else."""
    count, mean_ns = len(gaps), 1e9 / rate
    distance = 0.0
    for index, gap in enumerate(sorted(gaps)):
        expected = -math.expm1(-gap / mean_ns)
        distance = max(distance, expected - index / count, (index + 1) / count - expected)
    mean = sum(gaps) / count
    variance = sum((gap - mean) ** 2 for gap in gaps) / count
    covariance = sum((a - mean) * (b - mean) for a, b in zip(gaps, gaps[1:])) / (count - 1)
    return distance, math.sqrt(variance) / mean - 1, covariance / variance


@row("latency/self", 6)
def itself(folder):
    """The instruments against each other: a client whose times are simple is found true, a lie of 100 µs is found."""
    with watched(folder, "--delay", 300) as (server, capture):
        trace_file = os.path.join(folder, "yardstick.csv")
        words = [os.path.join(TOOLS, "yardstick"), "-d", 1000, "-c", 4, "-l", trace_file, "127.0.0.1", server.port]
        ended = run_client(words)
        if ended.status != 0:
            raise Broken(ended.errors)
        counts = server.count()
        trace = Load(ended, None, trace_file).trace()
        exchanges, served = capture.exchanges(), server.rows()
    own = judge(trace, exchanges, served)
    yield holds("server counts what the yardstick sent", counts["requests"] == json.loads(ended.out)["requests_with_probe"])
    # The yardstick's brackets hold its reading of the clock, which is all that it can say.
    yield from requests(own, kernel=False, exact=False)
    for rows in trace.values():
        for row_ in rows:
            row_["last_byte_ns"] -= 100 * US
    lied = judge(trace, exchanges, served)
    yield at_most("100 µs taken off: part of capture ≤ shown that is left, %", 100 * within_interval(lied, 0)[0], 20)
