#!/usr/bin/env python3
"""The engine beside llama.cpp's own static batching: decoded tokens a second at batch 1, 2, 4, 8, same source, model, layout, KV type, flash
attention and threads; the price of load-invariant output; what a long prompt does to seven running answers; the first token of an idle
server beside llama-server. Everything is run --repeat times in shuffled order; medians and spread are printed.

  ./setup --bench && bench/engine.py [--repeat 5] [--threads 2] [--only decode,long,ttft]

llama-batched-bench does not sample, send or account: it is the ceiling. Times are of this machine and minute: compare lines, not runs."""

import argparse
import collections
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

import shared_pool

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = str(ROOT / ".deps/models/SmolLM2-135M-Instruct.Q4_1.gguf")
BATCHES = "1,2,4,8"


def lines(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not found:
        raise SystemExit(f"engine: {command[0]} failed ({done.returncode}): {done.stderr.strip()[-500:]}")
    return found


def ours(settings, layout, kv_type, invariant, *more):
    return lines([str(ROOT / "build/engine_bench"), MODEL, "--layout", layout, "--kv-type", kv_type, "--load-invariant", invariant, "--threads",
                  str(settings.threads), *more])


def static(settings, layout, kv_type):
    """llama-batched-bench with the flash attention that the engine chooses for this KV type."""
    command = [str(ROOT / ".deps/llama-bench/llama-batched-bench"), "-m", MODEL, "-c", "10240", "-b", "512", "-ub", "512", "-npp", "128", "-ntg", "128", "-npl",
               BATCHES, "-ctk", kv_type, "-ctv", kv_type, "-fa", "on" if kv_type == "q8_0" else "off", "-t", str(settings.threads), "--output-format", "jsonl"]
    return {line["pl"]: line["speed_tg"] for line in lines(command + (["-kvu"] if layout == "unified" else []))}


def decode(settings, results):
    def one(layout, kv_type, invariant):
        for line in ours(settings, layout, kv_type, invariant, "--long-prompt", "0", "--batches", BATCHES):
            results[f"{layout} {kv_type}", f"engine, load-invariant {invariant} ({line['load_invariant']})", line["batch"]].append(line["tokens_per_s"])
            results[f"{layout} {kv_type}", "share of a step outside the model", line["batch"]].append(line["outside_share"])

    def ceiling(layout, kv_type):
        for batch, speed in static(settings, layout, kv_type).items():
            results[f"{layout} {kv_type}", "llama-batched-bench", batch].append(speed)

    jobs = []
    for layout in ("streams", "unified"):
        for kv_type in ("q8_0", "f16"):
            jobs.append(lambda l=layout, k=kv_type: ceiling(l, k))
            for invariant in ("on", "off"):
                jobs.append(lambda l=layout, k=kv_type, i=invariant: one(l, k, i))
    return jobs


def long_prompt(settings, results):
    def one(layout, target):
        more = ["--itl-target", str(target)] if target else []
        line = ours(settings, layout, "q8_0", "on", "--batches", "1", "--tokens", "8", *more)[-1]
        for key in ("itl_before_p50_ms", "itl_p50_ms", "itl_p99_ms", "itl_max_ms", "ttft_ms"):
            results[f"{layout}, {f'target {target} ms' if target else 'no target'}", key, ""].append(line[key])

    return [lambda l=layout, t=target: one(l, t) for layout in ("streams", "unified") for target in (0, 100, 200)]


def first_token(settings, results):
    """One user, an idle server, a prompt of about 100 tokens that the server has not seen."""
    def one(name, command):
        port = shared_pool.free_port()
        with shared_pool.Server(command(port), port):
            model = shared_pool.model_of(port)
            shared_pool.one_answer(port, model, "warming up", argparse.Namespace(tokens=8, seeds=1))
            for topic in shared_pool.TOPICS:
                found = shared_pool.one_answer(port, model, topic, argparse.Namespace(tokens=4, seeds=1))[2]
                results["idle", name, ""].append(found * 1e3)
                time.sleep(0.1)

    threads = str(settings.threads)
    commands = {"fullstop serve": lambda port: [str(ROOT / "build/fullstop"), "serve", "--listen", f"127.0.0.1:{port}", "--threads", threads, "--quiet"],
                "llama-server -np 8": lambda port: [str(ROOT / ".deps/llama-server/llama-server"), "-m", MODEL, "--host", "127.0.0.1", "--port", str(port), "--no-webui",
                                                    "-c", "8192", "-np", "8", "--no-kv-unified", "-ctk", "q8_0", "-ctv", "q8_0", "-t", threads]}
    return [lambda n=name, c=command: one(n, c) for name, command in commands.items()]


def shown(values):
    return f"{statistics.median(values):.4g} ({min(values):.4g} to {max(values):.4g})"


def tables(results):
    for group in dict.fromkeys(key[0] for key in results):
        rows = dict.fromkeys(key[1] for key in results if key[0] == group)
        columns = list(dict.fromkeys(key[2] for key in results if key[0] == group))
        print(f"\n{group}\n\n| | {' | '.join(f'batch {c}' if c else '' for c in columns)} |\n|---|{'---|' * len(columns)}")
        for row in rows:
            print(f"| {row} | {' | '.join(shown(results[group, row, c]) if results.get((group, row, c)) else '' for c in columns)} |")
        ceiling = {c: results.get((group, "llama-batched-bench", c)) for c in columns}
        for row in rows:
            if row.startswith("engine") and all(ceiling.values()):
                print(f"| {row} / llama-batched-bench | "
                      f"{' | '.join(f'{statistics.median(results[group, row, c]) / statistics.median(ceiling[c]):.3f}' for c in columns)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=max(1, os.cpu_count() or 2))
    parser.add_argument("--only", default="decode,long,ttft")
    settings = parser.parse_args()
    parts = {"decode": decode, "long": long_prompt, "ttft": first_token}
    if unknown := set(settings.only.split(",")) - set(parts):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(parts)}")
    results = collections.defaultdict(list)
    jobs = [job for name in settings.only.split(",") for job in parts[name](settings, results)] * settings.repeat
    random.Random(1).shuffle(jobs)
    for number, job in enumerate(jobs, 1):
        print(f"engine: {number} of {len(jobs)}", file=sys.stderr, flush=True)
        job()
    print(f"{settings.threads} threads; median (spread) of {settings.repeat}")
    tables(dict(sorted(results.items(), key=lambda item: (item[0][0], str(item[0][1]), item[0][2] or 0))))


if __name__ == "__main__":
    main()
