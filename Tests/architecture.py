#!/usr/bin/env python3
"""Writes what ARCHITECTURE.md says of the real graph: rooms, modules, sizes and what each program carries.

    architecture.py [--check]

With --check it changes nothing, and fails if the page is old. `make architecture` writes, `make lint` checks.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- what make architecture writes -->\n", "<!-- the end of what make architecture writes -->\n"

# The rooms from top to bottom, each with the folders of its modules.
ROOMS = [
    ("Programs", "Sources/Programs"),
    ("Commands", "Sources/Commands"),
    ("Rider", "Sources/Rider"),
    ("Operator", "Sources/Operator"),
    ("Vehicle", "Sources/Vehicle"),
    ("Terminal", "Sources/Terminal"),
    ("UserSettings", "Sources/UserSettings"),
    ("FileFormats", "Sources/FileFormats"),
    ("Adapters", "Sources/Adapters"),
    ("SystemIO", "Sources/SystemIO"),
    ("Core", "Sources/Core"),
]


def targets() -> dict:
    dump = subprocess.run(
        ["swift", "package", "dump-package"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found = {}
    for target in json.loads(dump)["targets"]:
        path = target.get("path") or f"Sources/{target['name']}"
        if target["type"] in ("regular", "executable") and path.startswith("Sources/"):
            names = [d["byName"][0] for d in target["dependencies"] if "byName" in d]
            found[target["name"]] = (path, names)
    return {name: (path, [n for n in names if n in found]) for name, (path, names) in found.items()}


def lines(path: str) -> int:
    return sum(file.read_text().count("\n") for file in (ROOT / path).rglob("*.swift"))


def closure(name: str, graph: dict, seen: set) -> set:
    if name not in seen:
        seen.add(name)
        for other in graph[name][1]:
            closure(other, graph, seen)
    return seen


def thousands(number: int) -> str:
    return f"{number:,}"


def text(graph: dict) -> str:
    rows = ["| room | module | lines | of our modules it names |", "| --- | --- | ---: | --- |"]
    for room, folder in ROOMS:
        modules = [name for name, (path, _) in graph.items() if path == folder or path.startswith(folder + "/")]
        for index, name in enumerate(sorted(modules)):
            path, names = graph[name]
            named = ", ".join(sorted(n for n in names if not n.startswith("C") or not n[1:2].isupper()))
            rows.append(f"| {room if index == 0 else ''} | `{name}` | {thousands(lines(path))} | {named} |")
    carried = ["| program | lines that it carries | of these modules |", "| --- | ---: | --- |"]
    for name in ("stepctl", "stepctl-operator", "stepd"):
        modules = sorted(m for m in closure(name, graph, set()) if lines(graph[m][0]))
        count = sum(lines(graph[m][0]) for m in modules)
        carried.append(f"| `{name}` | {thousands(count)} | {', '.join(modules)} |")
    total = thousands(sum(lines(path) for path in ["Sources"]))
    note = f"All of `Sources` has {total} lines of Swift, with comments and blank lines."
    return "\n".join(rows) + "\n\n" + "\n".join(carried) + f"\n\n{note}\n"


def main():
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    new = head + BEGIN + "\n" + text(targets()) + "\n" + END + tail
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(new)
    elif new != page:
        sys.exit("ARCHITECTURE.md is older than the code: run `make architecture`")


main()
