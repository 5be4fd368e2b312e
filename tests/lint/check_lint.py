#!/usr/bin/env python3
"""Runs clang-tidy (.clang-tidy says which checks) over every source file of src/ and bench/ that is not a test, and remembers in
the build folder which file passed with which headers, checks and command: only what changed is read again. Prints every
finding and exits 1 with any. `--self-test` plants a fault in a small file and expects it to be found."""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAULT = "#include <string>\nint f(std::string s) { std::string t = std::move(s); return static_cast<int>(s.size() + t.size()); }\n"


def content_hash(path: pathlib.Path, known: dict) -> str:
    if path not in known:
        known[path] = hashlib.sha256(path.read_bytes()).hexdigest()
    return known[path]


def own_headers(build: pathlib.Path) -> dict:
    """Object file -> our headers that it was compiled from, as ninja recorded them. Empty for what was not built."""
    result, current = {}, None
    listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        if line and not line[0].isspace() and ": #deps" in line:
            current = result.setdefault(line.split(":")[0], [])
        elif current is not None and line.strip().startswith(f"{ROOT}/"):
            current.append(pathlib.Path(line.strip()))
    return result


def commands(build: pathlib.Path):
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        inside = file.is_relative_to(ROOT / "src") or file.is_relative_to(ROOT / "bench")
        if inside and not file.name.endswith("_test.cc"):
            words = shlex.split(entry["command"])
            yield file, entry["command"], words[words.index("-o") + 1]


def tidy(clang_tidy: str, *arguments: str):
    found = subprocess.run([clang_tidy, "--quiet", *arguments], capture_output=True, text=True)
    return found.returncode, found.stdout + ("" if found.returncode == 0 else found.stderr)


def check(build: pathlib.Path, clang_tidy: str) -> int:
    version = subprocess.run([clang_tidy, "--version"], capture_output=True, text=True, check=True).stdout
    rules = version + (ROOT / ".clang-tidy").read_text()
    headers, known, todo, files = own_headers(build), {}, [], 0
    passed = build / "lint"
    passed.mkdir(exist_ok=True)
    for file, command, output in commands(build):
        files += 1
        read = sorted({file, *headers.get(output, [])})
        key = hashlib.sha256("\n".join([rules, command, *(content_hash(path, known) for path in read)]).encode()).hexdigest()
        stamp = passed / hashlib.sha256(str(file).encode()).hexdigest()[:16]
        # A file that was never built has no list of headers to remember it by.
        if output not in headers or not stamp.exists() or stamp.read_text() != key:
            todo.append((file, stamp, key))
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {pool.submit(tidy, clang_tidy, "-p", str(build), str(file)): (file, stamp, key) for file, stamp, key in todo}
        for run in concurrent.futures.as_completed(runs):
            file, stamp, key = runs[run]
            code, text = run.result()
            if code == 0:
                stamp.write_text(key)
                continue
            failures += 1
            print(f"{file.relative_to(ROOT)}:\n{text}", flush=True)
    print(f"lint: {files} files, {len(todo)} read now, {failures} with findings")
    return 1 if failures else 0


def self_test(clang_tidy: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "fault.cc"
        file.write_text(FAULT)
        code, text = tidy(clang_tidy, f"--config-file={ROOT / '.clang-tidy'}", str(file), "--", "-std=c++23")
    found = code != 0 and "bugprone-use-after-move" in text
    print("planted fault found" if found else f"the planted use after move was not found:\n{text}")
    return 0 if found else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build", help="build folder with compile_commands.json")
    parser.add_argument("--clang-tidy", default=str(ROOT / ".deps/clang-tidy/clang_tidy/data/bin/clang-tidy"))
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    return self_test(arguments.clang_tidy) if arguments.self_test else check(arguments.build.resolve(), arguments.clang_tidy)


if __name__ == "__main__":
    sys.exit(main())
