#!/usr/bin/env python3
"""Holds the tree against ARCHITECTURE.md, "Direction": which folder may include which, where foreign headers may occur,
which words never occur outside the rims, and how long a file may grow. Prints each break and exits 1 on the first run
with any. `--self-test` plants one break of every kind in a small tree and expects each to be found."""

import pathlib
import re
import sys
import tempfile

RANKS = {
    "base": 0,
    "answer": 1,
    "wire": 2, "net": 2, "schema": 2, "stats": 2, "store": 2,
    "serving": 3,
    "probe": 4, "observe": 4, "judge": 4, "report": 4, "gateway": 4, "engine": 4, "plan": 4,
    "adapters/asio": 5, "adapters/llama": 5, "adapters/redis": 5, "adapters/sqlite": 5, "adapters/postgres": 5, "simulator": 5,
    "running": 6,
    "cli": 7,
    "main": 8,
}
SIBLINGS = {("report", "judge")}  # the one exception
# A unit test may also use these (CMakeLists.txt, FULLSTOP_TEST_USES_*).
TEST_USES = {"judge": {"wire"}, "adapters/asio": {"wire"}}

FOREIGN = [  # header pattern, folders (or files) where it may occur
    (r"boost/(asio|beast|process)", {"adapters/asio"}),
    (r"openssl/", {"adapters/asio", "base/sha256.cc"}),
    (r"((llama|ggml)[\w-]*\.h|jinja/)", {"adapters/llama"}),
    (r"(SQLiteCpp/|sqlite3\.h)", {"adapters/sqlite"}),
    (r"(postgresql/|libpq)", {"adapters/postgres"}),
    (r"hiredis/", {"adapters/redis"}),
    (r"(CLI/|toml)", {"cli", "main"}),
    (r"simdjson", {"wire"}),
    (r"(sys/socket|netinet/|sys/epoll|poll|arpa/inet|netdb|termios|sys/ioctl|unistd|fcntl)\.?h?\b", {"adapters/asio", "adapters/sqlite", "adapters/postgres", "main"}),
]
WORDS = ["steady_clock::now", "system_clock", "random_device", "getenv", "std::thread", "std::jthread", "sleep_for", "std::cout", "std::cerr", "fopen"]
MAX_LINES = 600
MAX_FILES = 20  # of one folder, beside its tests


def folder_of(path: pathlib.PurePath) -> str:
    parts = path.parts
    if len(parts) == 1:
        return "main"
    return "/".join(parts[:2]) if parts[0] == "adapters" else parts[0]


def is_of_tests(file: pathlib.PurePath) -> bool:
    return file.name.endswith("_test.cc") or file.name.startswith("test_")


def breaks(src: pathlib.Path):
    for folder in sorted({file.parent for file in src.rglob("*") if file.suffix in {".h", ".cc"}}):
        files = sum(1 for file in folder.iterdir() if file.suffix in {".h", ".cc"} and not is_of_tests(file))
        if files > MAX_FILES:
            yield f"{folder.relative_to(src)}: {files} files beside its tests; above {MAX_FILES} it has sub-rooms"
    for file in sorted(src.rglob("*")):
        if file.suffix not in {".h", ".cc"}:
            continue
        relative = file.relative_to(src)
        here = folder_of(relative)
        is_test = is_of_tests(file)
        text = file.read_text(encoding="utf-8")
        if here not in RANKS:
            yield f"{relative}: folder {here} is not in the list of layers"
            continue
        for number, line in enumerate(text.splitlines(), 1):
            place = f"{relative}:{number}"
            if found := re.match(r'\s*#\s*include\s*"([^"]+)"', line):
                target = folder_of(pathlib.PurePosixPath(found[1]))
                if found[1].startswith("tests/support/") and is_test:
                    continue
                if not (src / found[1]).exists():
                    yield f"{place}: \"{found[1]}\" is not a path below src/"
                elif target != here and RANKS.get(target, 99) >= RANKS[here] and (here, target) not in SIBLINGS and not (
                        is_test and target in TEST_USES.get(here, set())):
                    yield f"{place}: {here} includes {target}, which does not stand to its right"
            if found := re.match(r"\s*#\s*include\s*[<\"]([^>\"]+)[>\"]", line):
                for pattern, allowed in FOREIGN:
                    if re.match(pattern, found[1]) and here not in allowed and str(relative) not in allowed and not is_test:
                        yield f"{place}: <{found[1]}> may be included in {', '.join(sorted(allowed))} only"
            if here != "main" and not here.startswith("adapters/") and not is_test:
                for word in WORDS:
                    if word in line and not line.lstrip().startswith(("//", "///")):
                        yield f"{place}: '{word}' belongs to adapters/ and main.cc"
        lines = text.count("\n")
        if lines > MAX_LINES and not is_test:
            yield f"{relative}: {lines} lines; a file above {MAX_LINES} is split"


def self_test() -> int:
    planted = {
        "base/a.h": '#include "answer/b.h"\n',                      # upwards
        "probe/c.h": '#include "judge/d.h"\n',                      # sibling
        "judge/d.h": "int d();\n",
        "answer/b.h": "#include <openssl/ssl.h>\n",                 # foreign header
        "adapters/sqlite/b.h": "#include <libpq-fe.h>\n",          # a database's header elsewhere
        "gateway/k.cc": "#include <hiredis/hiredis.h>\n",          # another one
        "wire/e.cc": "auto now = std::chrono::steady_clock::now();\n",  # word
        "util/f.h": "int f();\n",                                   # unknown folder
        "net/g.cc": "\n" * (MAX_LINES + 1),                         # too long
        "net/h.h": '#include "h2.h"\n',                             # not a path below src
        "report/i.h": '#include "judge/d.h"\n',                     # allowed
        "net/j_test.cc": '#include "tests/support/source_dir.h"\nstd::thread t;\n',  # allowed in tests
        "net/l.cc": '#include "tests/support/source_dir.h"\n',     # not elsewhere
    }
    planted |= {f"store/{i}.h": "\n" for i in range(MAX_FILES + 1)}   # too many
    expected = ["store: ", "base/a.h", "probe/c.h", "answer/b.h", "adapters/sqlite/b.h", "gateway/k.cc", "wire/e.cc", "util/f.h", "net/g.cc", "net/h.h", "net/l.cc"]
    with tempfile.TemporaryDirectory() as folder:
        src = pathlib.Path(folder)
        for name, text in planted.items():
            (src / name).parent.mkdir(parents=True, exist_ok=True)
            (src / name).write_text(text)
        found = list(breaks(src))
    missed = [name for name in expected if not any(line.startswith(name) for line in found)]
    false_alarms = [line for line in found if not line.startswith(tuple(expected))]
    print(f"{len(expected) - len(missed)} of {len(expected)} planted breaks found, {len(false_alarms)} false alarms")
    for line in missed + false_alarms:
        print(" ", line)
    return 1 if missed or false_alarms else 0


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    src = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "src")
    found = list(breaks(src))
    print("\n".join(found) or f"layers hold in {sum(1 for f in src.rglob('*') if f.suffix in {'.h', '.cc'})} files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
