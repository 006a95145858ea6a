#!/usr/bin/env python3
"""Runs rows and prints the table. Called by .ci/truth, which says how."""

import os
import platform
import sys
import time

sys.dont_write_bytecode = True  # a measurement leaves nothing in the tree
import accounting  # noqa: E402, F401
import arithmetic  # noqa: E402, F401
import clients  # noqa: E402, F401
import instruments  # noqa: E402
import latency  # noqa: E402, F401
import rows  # noqa: E402
import speed  # noqa: E402, F401
import streams  # noqa: E402, F401


def steal_ticks():
    """Time that the hypervisor gave to others, all processors, in ticks."""
    with open("/proc/stat") as stat:
        return int(stat.readline().split()[8])


def chosen(words):
    names = [name for name, (_, _, always) in rows.ROWS.items()
             if name in words or always and (not words or any(name.startswith(word) for word in words))]
    for word in words:
        if not any(name.startswith(word) for name in names):
            sys.exit(f"truth: no row begins with {word}; there are: {' '.join(rows.ROWS)}")
    return names


def run(name):
    """Runs a row; returns whether all that it is to reach was reached, and whether something is wrong."""
    function, _, _ = rows.ROWS[name]
    is_reached, is_wrong = True, False
    try:
        with instruments.folder() as folder:
            for figure in function(folder):
                figure.what = f"{name}: {figure.what}"
                rows.show(figure)
                is_reached &= figure.reached is not False
                is_wrong |= figure.is_wrong()
    except instruments.Skipped as why:
        is_wrong = not rows.skipped(name, why, why.what)
    except instruments.Broken as why:
        rows.show(rows.Figure(name, str(why).replace("\n", " "), "runs", False))
        is_wrong = True
    return is_reached, is_wrong


def main(words):
    if words == ["--list"]:
        print("\n".join(f"{name:24} {seconds:4} s{'' if always else ', only by its name'}"
                        for name, (_, seconds, always) in rows.ROWS.items()))
        return 0
    is_strict = "--strict" in words
    names = chosen([word for word in words if word != "--strict"])
    if instruments.has_network_of_its_own():
        instruments.raise_limits()
    # What reads and judges is on the server's side, where it is idle while a row runs.
    os.sched_setaffinity(0, {instruments.SERVER_CORE})
    print(f"{instruments.PRONY} on Linux {platform.release()}, {os.cpu_count()} processors; load average before "
          f"{os.getloadavg()[0]:.2f}\n\n| what | figure | reach | |\n|---|---|---|---|", flush=True)
    began, stolen = time.monotonic(), steal_ticks()
    ended = {name: run(name) for name in names}
    missed = [name for name, (is_reached, _) in ended.items() if not is_reached]
    wrong = [name for name, (_, is_wrong) in ended.items() if is_wrong]
    print(f"\n{len(names)} rows in {time.monotonic() - began:.0f} s, {steal_ticks() - stolen} ticks of steal; load average "
          f"after {os.getloadavg()[0]:.2f}; {len(missed)} with something not reached: {' '.join(missed) or 'none'}; "
          f"{len(wrong)} wrong: {' '.join(wrong) or 'none'}")
    return 1 if wrong or (is_strict and missed) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
