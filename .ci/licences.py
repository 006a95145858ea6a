"""Prints the licences of the crates that programs are made of, from a line of `cargo metadata` for each on standard input.

    cargo metadata --locked --format-version 1 --filter-platform TARGET | licences.py PACKAGE…

Each text once, with the crates that have it; what their authors brought of others (LuaJIT, SQLite, zstd) included. A crate
without a text has its licence's name alone. Ends with 1 where a crate names no licence.
"""

import json
import os
import re
import sys

NAME = re.compile(r"(?i)^(licen[cs]e|copying|copyright|unlicense|notice)([-._].*)?$")
BYTES_MAX = 1 << 18
SKIPPED = {"tests", "test", "benches", "examples", "doc", "docs", "fuzz"}


def reachable(metadata, packages, root):
    """Ids of what `root` is linked with: no tests, no tools of the build."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found, open_ids = set(), [root]
    while open_ids:
        one = open_ids.pop()
        if one in found:
            continue
        found.add(one)
        for dep in nodes[one]["deps"]:
            # Crates called …-src bring what others then compile and link: Lua and LuaJIT.
            is_source = packages[dep["pkg"]]["name"].endswith("-src")
            if is_source or any(kind["kind"] is None for kind in dep["dep_kinds"]):
                open_ids.append(dep["pkg"])
    return found


def texts(folder):
    """The licences below a crate's folder, by path."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
        for name in sorted(files):
            path = os.path.join(place, name)
            is_source = name.endswith((".rs", ".c", ".h", ".lua", ".py"))
            if NAME.match(name) and not is_source and os.path.getsize(path) <= BYTES_MAX:
                with open(path, encoding="utf-8", errors="replace") as file:
                    yield os.path.relpath(path, folder), file.read().strip()


def main():
    foreign = {}
    for name, line in zip(sys.argv[1:], sys.stdin, strict=True):
        metadata = json.loads(line)
        packages = {package["id"]: package for package in metadata["packages"]}
        root = next(package["id"] for package in metadata["packages"] if package["name"] == name)
        of_others = (packages[one] for one in reachable(metadata, packages, root))
        foreign |= {(one["name"], one["version"]): one for one in of_others if one["source"]}
    by_text, nameless = {}, []
    print("Prony's programs contain these works of others, under these licences.\n")
    for _, package in sorted(foreign.items()):
        licence = package["license"] or package["license_file"]
        if not licence:
            nameless.append(package["name"])
        called = f"{package['name']} {package['version']}"
        print(f"{called}: {licence}")
        for path, text in texts(os.path.dirname(package["manifest_path"])):
            by_text.setdefault(text, []).append(f"{called}, {path}")
    for text, owners in by_text.items():
        print(f"\n{'=' * 80}\n" + "\n".join(owners) + f"\n{'-' * 80}\n{text}")
    if nameless:
        sys.exit(f"licences.py: no licence is named by {', '.join(nameless)}")


main()
