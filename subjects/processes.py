"""The processes of a group, as /proc shows them."""

import contextlib
import os
import pathlib


def of_group(group):
    """The names and states ("nginx S") of the living processes of the group with this number.

    It reads each process's file by itself: `Path.glob("[0-9]*/stat")` fails with ESRCH as soon as
    any process of the machine ends between being listed and being looked at.
    """
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            text = pathlib.Path("/proc", number, "stat").read_text(errors="replace")
            name, _, rest = text.rpartition(")")
            state, _, its_group = rest.split()[:3]
            if int(its_group) == group and state not in "ZX":
                found.append(name.partition("(")[2] + f" {state}")
    return found
