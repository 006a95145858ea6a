"""Servers that are frozen at known times: what each request's latency must then be is arithmetic."""

import heapq
from dataclasses import dataclass

from instruments import QUANTILES, Responder, percentile, prony_load, time_of, watched
from rows import Figure, holds, is_equal, row

MS = 1_000_000
ANSWER_MS = 1


class Freezes:
    """When a server does nothing: from so long after the first request, so long, again every `every`; in ns."""

    def __init__(self, first, length, every=None):
        self.first, self.length, self.every = first, length, every

    def thawed(self, time):
        """The first moment from `time` on at which it is not frozen."""
        since = time - self.first
        if since < 0:
            return time
        begun = since // self.every * self.every if self.every else 0
        return self.first + begun + self.length if since - begun < self.length else time

    def between(self, start, end):
        """Whether all of the time from `start` to `end` is outside of freezes."""
        def phase(time):
            since = time - self.first
            return since // self.every if self.every and since >= 0 else min(0, max(-1, since))
        return phase(start) == phase(end) and self.thawed(start) == start and self.thawed(end) == end

    def begun(self, window):
        """How many begin in a window of this length."""
        return 1 if self.every is None else max(0, -((self.first - window) // self.every))

    def words(self):
        """As the responder is told."""
        every = ["--every", self.every // MS] if self.every else []
        return ["--freeze", f"{self.first // MS}:{self.length // MS}", *every]


def latencies(rate, window, slots, freezes, turn_ns=0):
    """Of constant arrivals at `rate` in a window: answered less intended. Each takes an idle slot, or the first that
    becomes idle, in the order of arrivals; a server receives when it is not frozen, answers 1 ms later or when it thaws.
    From an answer to the next request on its slot it takes `turn_ns`."""
    idle = [(0, index) for index in range(slots)]
    found = []
    for number in range(int(rate * window // 1_000_000_000)):
        intended = int(number * 1_000_000_000 // rate)
        free, slot = heapq.heappop(idle)
        received = freezes.thawed(max(intended, free + turn_ns if free else 0))
        answered = freezes.thawed(received + ANSWER_MS * MS)
        found.append(answered - intended)
        heapq.heappush(idle, (answered, slot))
    return found


def turn_time(served, freezes):
    """Median of what passes between an answer and the next request on a connection after a freeze, while arrivals wait
    for slots: by the server's own clock, not the generator's. 0 where there is none such."""
    began = min(rows[0][0] for rows in served.values())
    found = []
    for rows in served.values():
        for (_, answered), (received, _) in zip(rows, rows[1:]):
            since = answered - began - freezes.first
            since = since % freezes.every if freezes.every else since
            if freezes.length <= since < freezes.length + 30 * MS and received - answered < MS:
                found.append(received - answered)
    return percentile(sorted(found), 0.5) if found else 0


@dataclass
class Aside:
    """What is not in the plan of a run and was seen by the capture: nothing of it is a figure of the generator."""
    # Median of what passes on the wire besides the server's own time, its waking among it.
    way_ns: int
    # Requests that took 1 ms longer than planned outside of freezes, because the machine was busy with something else.
    slow: int


def seen_aside(exchanges, served, freezes):
    began = min(rows[0][0] for rows in served.values())
    ways, slow = [], 0
    for port, seen in exchanges.items():
        for wire, (received, answered) in zip(seen, served[port]):
            if not freezes.between(wire.request - began, wire.answer - began):
                continue
            ways.append(wire.answer - wire.request - (answered - received))
            slow += wire.answer - wire.request > (ANSWER_MS + 1) * MS
    return Aside(percentile(sorted(ways), 0.5), slow)


def compared(report, truth, names, freezes_begun, aside):
    """Each percentile beside that of the arithmetic. Where a freeze begins or ends within microseconds of an arrival, that
    one may lie on either side: two places at most for each freeze, which matters where latencies jump there, as do those
    that were slow for another reason."""
    ordered = sorted(latency + aside.way_ns for latency in truth)
    edges = 2 * freezes_begun / len(ordered)
    for name in names:
        quantile = QUANTILES.get(name, 1.0)
        low, high = percentile(ordered, quantile - edges), percentile(ordered, min(1.0, quantile + edges + aside.slow / len(ordered)))
        if name == "max":
            low = high
        value = report["latency_ns"][name]
        expected = time_of(low) if low == high else f"{time_of(low)}…{time_of(high)}"
        def is_within(share, absolute_ns, value=value, low=low, high=high):
            return low - max(share * low, absolute_ns) <= value <= high + max(share * high, absolute_ns)

        yield Figure(name.replace("_", "."), f"{time_of(value)} beside {expected}", "within 5 % or 0.1 ms",
                     is_within(0.05, 0.1 * MS), is_within(0.1, 1 * MS), "10 % or 1 ms")


def run(folder, rate, seconds, slots, freezes, names, backlog=False):
    """A constant rate into a server that freezes; what is printed beside what must be."""
    with watched(folder, "--delay", 1000 * ANSWER_MS, *freezes.words(), real_time=True) as (server, capture):
        load = prony_load(folder, server.url, "-c", slots, "-d", f"{seconds}s", "--rate", rate, "--timeout", "20s",
                          may_fail=True, real_time=True)
        counts = server.count()
        exchanges, served = capture.exchanges(), server.rows()
    aside = seen_aside(exchanges, served, freezes)
    turn_ns = turn_time(served, freezes) if backlog else 0
    truth = latencies(rate, seconds * 1_000_000_000, slots, freezes, turn_ns)
    yield Figure("the way there and back, by the capture; slow for another reason", f"{time_of(aside.way_ns)}; {aside.slow}",
                 "part of the arithmetic")
    if backlog:
        yield Figure("answer to next request on a slot, by the server", time_of(turn_ns), "part of the arithmetic")
    yield is_equal("requests whose latency counts", "rate × window", load.report["latency_ns"]["count"], len(truth))
    yield is_equal("sent", "the server's count", load.report["counts"]["sent"], counts["requests"])
    yield from compared(load.report, truth, names, freezes.begun(seconds * 1_000_000_000), aside)


ALL = [*QUANTILES, "max"]
PERIODIC = Freezes(2_000 * MS, 500 * MS, 5_000 * MS)


@row("arithmetic/slots-600", 62)
def many_slots(folder):
    yield from run(folder, 1000, 60, 600, PERIODIC, ALL)


@row("arithmetic/slots-10", 62)
def few_slots(folder):
    yield from run(folder, 1000, 60, 10, PERIODIC, ALL, backlog=True)


@row("arithmetic/short", 42, always=False)
def short(folder):
    """The same in 20 s, for who has no patience."""
    for slots in (600, 10):
        for figure in run(folder, 1000, 20, slots, PERIODIC, ALL, backlog=slots == 10):
            figure.what = f"{slots} slots, {figure.what}"
            yield figure


@row("arithmetic/end", 12)
def across_the_end(folder):
    """A freeze that begins in the window and ends after it."""
    yield from run(folder, 1000, 10, 600, Freezes(9_700 * MS, 500 * MS), ["p50", "p90", "p99", "p99_9", "max"])


for percent in (10, 50, 90):
    @row(f"arithmetic/frozen-{percent}", 8)
    def mostly_frozen(folder, percent=percent):
        yield from run(folder, 200, 5, 1000, Freezes(250 * MS, percent * 50 * MS), ALL)


@row("arithmetic/closed", 6)
def closed(folder):
    """A closed loop hides a freeze in its percentiles, and must say so: of one connection one request takes long."""
    freezes = Freezes(2_000 * MS, 500 * MS)
    with Responder("--delay", 1000 * ANSWER_MS, *freezes.words(), real_time=True) as server:
        load = prony_load(folder, server.url, "-c", 1, "-d", "4s", real_time=True)
    printed, corrected = load.report["latency_ns"], load.report.get("corrected_ns")
    yield Figure("max", time_of(printed["max"]), "500…510 ms", 500 * MS <= printed["max"] <= 510 * MS)
    yield Figure("p99", time_of(printed["p99"]), "hides the freeze: < 5 ms", printed["p99"] < 5 * MS)
    # Had one been sent every millisecond of 4 s, the freeze would be one part in eight: p99 lies where 8 % of it are left.
    yield holds("corrected p99, hypothetical: 380…500 ms", corrected and 380 * MS <= corrected["p99"] <= 500 * MS,
                time_of(corrected["p99"]) if corrected else "none")
