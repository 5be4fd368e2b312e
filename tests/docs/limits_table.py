#!/usr/bin/env python3
"""The tables of limits in docs/security.md are those of the code: each stands between `<!-- limits: FILE -->` and `<!-- end -->`, and is
made from that file's constants and their comments: what it bounds, then, on lines that begin with two blanks more, what happens there.

  limits_table.py ROOT          fails when a table is not what the code says, or a file of limits has none
  limits_table.py ROOT --write  writes them anew
"""

import pathlib
import re
import sys

SECTION = re.compile(r"(<!-- limits: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
CONSTANT = re.compile(r"inline constexpr (const char\*|[\w:]+) (.+);")
UNITS = {"hours": 3600.0, "minutes": 60.0, "seconds": 1.0, "milliseconds": 1e-3}


def number(text, known):
    """What a constant's expression comes to; durations in seconds."""
    text = re.sub(r"std::chrono::(\w+)\(([^)]*)\)", lambda m: f"({m[2]}) * {UNITS[m[1]]}", text)
    text = re.sub(r"(std::size_t|std::int64_t|base::\w+)\s*[{(]([^{}()]*)[})]", r"(\2)", text).replace("'", "")
    return eval(text, {"__builtins__": {}}, dict(known))  # our own source


def shown(value, kind, name):
    if "Duration" in kind:
        for unit, size in (("h", 3600), ("min", 60), ("s", 1)):
            if value >= size and value % size == 0 and (unit != "min" or value >= 120):
                return f"{value / size:g} {unit}"
        return f"{value * 1000:g} ms"
    if name.endswith("Bytes") or "Bytes" in kind:
        for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
            if value >= size and value % size == 0:
                return f"{value // size} {unit}"
        return f"{value} bytes"
    return f"{value:,}".replace(",", " ") if isinstance(value, int) and "Port" not in name else f"{value:g}"


def rows_of(text):
    """Name, value, what it bounds and what happens there, of each constant that is a number."""
    known, comment, rows, used = {}, [], [], False
    for line in re.sub(r"(?m)^(inline constexpr [^;\n]*)\n([^;]*;)", r"\1 \2", text).splitlines():
        if line.startswith("///"):
            comment = ([] if used else comment) + [line[3:]]
            used = False
            continue
        found = CONSTANT.match(line)
        if not found:
            comment = []
            continue
        used = True  # several constants in a row may stand below one comment
        kind, rest = found.groups()
        what = " ".join(each.strip() for each in comment if not each.startswith("  "))
        then = " ".join(each.strip() for each in comment if each.startswith("  "))
        for each in re.split(r",\s+(?=k[A-Z])", rest):
            name, value, braced = re.match(r"(k\w+)(?:\s*=\s*(.+)|\{(.+)\})$", each).groups()
            value = value or braced
            if value.startswith('"'):
                continue
            known[name] = number(value, known)
            rows.append((name, shown(known[name], kind, name), what, then or "-"))
    return rows


def table(rows):
    lines = ["| limit | value | what it bounds | there |", "|---|---|---|---|"]
    return "\n".join(lines + ["| `{}` | {} | {} | {} |".format(*(cell.replace("|", "\\|") for cell in row)) for row in rows]) + "\n"


def main():
    root = pathlib.Path(sys.argv[1])
    page = root / "docs/security.md"
    text = page.read_text(encoding="utf-8")
    written = SECTION.sub(lambda m: m[1] + table(rows_of((root / "src" / m[2]).read_text(encoding="utf-8"))) + m[4], text)
    missing = {str(path.relative_to(root / "src")) for path in (root / "src").rglob("limits.h")} - {m[2] for m in SECTION.finditer(text)}
    if missing:
        sys.exit(f"docs/security.md has no table of {', '.join(sorted(missing))}")
    if "--write" in sys.argv:
        page.write_text(written, encoding="utf-8")
    elif written != text:
        sys.exit("docs/security.md: a table of limits is not what the code says; tests/docs/limits_table.py . --write")


if __name__ == "__main__":
    main()
