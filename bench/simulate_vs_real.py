#!/usr/bin/env python3
"""Does `fullstop simulate` tell what `fullstop serve` does? In one go, on this machine: calibrate, serve a real load of closed-loop users in a
small pool while each client writes down what it sees, then simulate the same requests in the same setting, and compare.

  bench/simulate_vs_real.py [--cells 1024] [--users 8] [--requests 24] [--admission forecast,eager] [--threads 1] [--repeat 1]

Printed for each mode: first token, gaps and throughput as clients saw them and as simulated, with the relative error, once as they are and once
with all simulated times divided by one factor that makes the whole runs equally long: on a machine whose speed changes from minute to minute
only the second tells how well the simulation knows what happens. What all prompts begin with is told to the
simulation. The last column is what the calibration's own trial of real steps says the table misses. Clients share the machine with the server:
give it fewer threads than there are cores."""

import argparse
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

import shared_pool

ROOT = pathlib.Path(__file__).resolve().parent.parent
FULLSTOP = str(ROOT / "build/fullstop")
SUBJECTS = ["bread", "rivers", "a voyage", "bees", "a house", "a farm", "printing", "cities", "glass", "winter", "a bridge", "salt"]


def quantile(values, q):
    """As stats/quantile.h: linear between order statistics."""
    values = sorted(values)
    place = q * (len(values) - 1)
    low = int(place)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (place - low)


def calibrate(settings, folder):
    environment = {**os.environ, "XDG_STATE_HOME": str(folder)}
    said = subprocess.run([FULLSTOP, "simulate", "--calibrate", "--kv-layout", "unified", "--threads", str(settings.threads)], check=True, text=True,
                          stdout=subprocess.PIPE, env=environment).stdout
    print(said.strip(), file=sys.stderr)
    return pathlib.Path(re.search(r"Kept in (.*)", said)[1])


def one_request(port, model, number, settings):
    """What one client sees: seconds to the first token, gaps, prompt and output tokens, and whether the answer is whole."""
    body = json.dumps({"model": model, "temperature": 0.7, "seed": number, "max_tokens": settings.tokens, "stream": True, "stream_options": {"include_usage": True},
                       "messages": [{"role": "user", "content": f"{number}. Write a long story about {SUBJECTS[number % len(SUBJECTS)]}. {shared_pool.FILLER}"}]})
    asked, last, first, gaps, end = time.monotonic(), None, None, [], {}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=900)
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    for line in connection.getresponse():
        if not line.startswith(b"data: {"):
            continue
        now, event = time.monotonic(), json.loads(line[6:])
        end = event.get("fullstop", end)
        if any(choice.get("delta", {}).get("content") for choice in event.get("choices", [])):
            if first is None:
                first = now - asked
            else:
                gaps.append(now - last)
            last = now
    connection.close()
    return {"asked": asked, "ttft_ms": 1e3 * first if first else None, "gaps_ms": [1e3 * gap for gap in gaps], "end": end}


def real_load(settings, admission):
    port = shared_pool.free_port()
    command = [FULLSTOP, "serve", "--listen", f"127.0.0.1:{port}", "--kv-layout", "unified", "--kv-tokens", str(settings.cells), "--max-sequences",
               str(settings.users), "--admission", admission, "--threads", str(settings.threads), "--quiet"]
    numbers, results, lock = iter(range(settings.requests)), [], threading.Lock()
    with shared_pool.Server(command, port):  # no request to warm up: forecast admission would learn its length
        model = shared_pool.model_of(port)

        def user():
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                result = one_request(port, model, number, settings)
                with lock:
                    results.append(result)

        users = [threading.Thread(target=user) for _ in range(settings.users)]
        started = time.monotonic()
        for thread in users:
            thread.start()
        for thread in users:
            thread.join()
        seconds = time.monotonic() - started
    results.sort(key=lambda result: result["asked"])
    return results, seconds


def simulated(settings, admission, results, table, folder):
    trace = folder / "trace.jsonl"
    beginning = max(result["end"]["cached_tokens"] for result in results)  # the chat template's, and what questions have in common
    with open(trace, "w", encoding="utf-8") as out:
        for result in results:
            end = result["end"]
            # At its limit an answer does not say where it would have ended by itself: later.
            natural = end["output_tokens"] + (1 if end["stop"]["cause"] == "token_limit" else 0)
            out.write(json.dumps({"at_ms": 1e3 * (result["asked"] - results[0]["asked"]), "prompt_tokens": end["prompt_tokens"], "output_tokens": natural,
                                  "max_tokens": settings.tokens, "shared_tokens": min(beginning, end["prompt_tokens"])}) + "\n")
    document = json.loads(subprocess.run(
        [FULLSTOP, "simulate", "--trace", str(trace), "--users", str(settings.users), "--kv-tokens", str(settings.cells), "--max-sequences", str(settings.users),
         "--admission", admission, "--cost", str(table), "--json", "-"], check=True, stdout=subprocess.PIPE, text=True).stdout)
    return document["settings"][0]


def compare(admission, results, seconds, virtual, step_error):
    causes = [result["end"].get("stop", {}).get("cause") for result in results]
    whole = sum(cause in ("natural_end", "token_limit") for cause in causes)
    ttft = [result["ttft_ms"] for result in results if result["ttft_ms"] is not None]
    gaps = [gap for result in results for gap in result["gaps_ms"]]
    tokens = sum(result["end"]["output_tokens"] for result in results)
    pauses = sum(sum(result["end"]["preemptions"].values()) for result in results)

    def cell(real, other):
        return f"{real:.0f} / {other:.0f} ({other / real - 1:+.0%})"

    for label, factor in (("as they are", 1.0), (f"divided by {virtual['elapsed_s'] / seconds:.2f}", virtual["elapsed_s"] / seconds)):
        times = [cell(quantile(values, q), virtual[name][f"p{q * 100:.0f}"] / factor)
                 for values, name in ((ttft, "ttft_ms"), (gaps, "itl_ms")) for q in (0.5, 0.99)]
        print(f"| {admission}, real / simulated | {label} | {whole}/{len(results)}, {virtual['whole']}/{virtual['requests']} | {' | '.join(times)} | "
              f"{cell(tokens / seconds, virtual['tokens_per_s'] * factor)} | {pauses} / {sum(virtual['preemptions'].values())} | "
              f"{'?' if step_error is None else f'{step_error:.0%}'} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1024)
    parser.add_argument("--users", type=int, default=8)
    parser.add_argument("--requests", type=int, default=24)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--admission", default="forecast,eager")
    parser.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--repeat", type=int, default=1)
    settings = parser.parse_args()
    print(f"{settings.users} users, {settings.requests} requests of {settings.tokens} tokens at most, {settings.cells} cells, {settings.threads} thread(s); load of "
          f"the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs\n")
    print("| mode | simulated times | whole | TTFT p50, ms | TTFT p99, ms | gap p50, ms | gap p99, ms | tokens/s | pauses | a step is missed by |\n"
          "|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for admission in settings.admission.split(",") * settings.repeat:
            table = calibrate(settings, folder)
            results, seconds = real_load(settings, admission)
            compare(admission, results, seconds, simulated(settings, admission, results, table, folder), json.loads(table.read_text())["step_error"])


if __name__ == "__main__":
    main()
