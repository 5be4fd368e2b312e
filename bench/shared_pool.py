#!/usr/bin/env python3
"""Eight users in a KV pool for three: who finishes, and how fast? The same load on `fullstop serve` in each mode of admission and on
llama-server with the settings people use, all with the same cells and KV type, one after the other, order shuffled, medians of --repeat.

  bench/shared_pool.py [--cells 1024] [--users 8] [--tokens 250] [--repeat 3] [--seeds 1] [--only NAME,...]

Every user asks once for --tokens tokens with a prompt of about 100. An answer is whole when it ends by itself or at its own limit and
its stream is complete. With --seeds N the load comes N times in a row, sampled at temperature 0.8 with another seed each time. Tokens a second: output tokens of whole answers over the time until the last user is through, failures
included. Wall time is of this machine and minute: compare lines, not runs."""

import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOPICS = ["bread", "rivers", "a voyage", "bees", "a house", "a farm", "printing", "cities"]
FILLER = ("Begin with its origin, go on with the people who shaped it, the tools they used, the trade it brought about, its failures, its "
          "seasons, its cost, its songs and its laws, and close with what a traveller sees of it today. Use whole sentences and no list.")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Server:
    def __init__(self, command, port):
        self.command, self.port = command, port

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2) as answer:
                    if answer.status == 200:
                        return self
            except OSError:
                time.sleep(0.1)
        self.__exit__()
        raise SystemExit(f"shared_pool: the server did not come up: {' '.join(self.command)}")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def candidates(settings):
    """Name -> command for a port."""
    threads = str(settings.threads)

    def fullstop(admission):
        return lambda port: [str(ROOT / "build/fullstop"), "serve", "--listen", f"127.0.0.1:{port}", "--kv-layout", "unified", "--kv-tokens",
                             str(settings.cells), "--max-sequences", str(settings.users), "--admission", admission, "--threads", threads, "--quiet"]

    def llama(*words):
        return lambda port: [str(ROOT / ".deps/llama-server/llama-server"), "-m", str(ROOT / ".deps/models/SmolLM2-135M-Instruct.Q4_1.gguf"), "--host",
                             "127.0.0.1", "--port", str(port), "--no-webui", "-c", str(settings.cells), "-ctk", "q8_0", "-ctv", "q8_0", "-t", threads, *words]

    return {"fullstop reserve": fullstop("reserve"), "fullstop forecast": fullstop("forecast"), "fullstop eager": fullstop("eager"),
            "llama-server -np 8 -kvu": llama("-np", "8", "-kvu"), "llama-server -np 2 -kvu": llama("-np", "2", "-kvu")}


def model_of(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=10) as answer:
        return json.load(answer)["data"][0]["id"]


def one_answer(port, model, topic, settings, seed=1):
    """Whether it was whole, output tokens, seconds to the first token, longest silence after it."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": f"Write a long essay about {topic}. {FILLER}"}], "temperature": 0 if settings.seeds == 1 else 0.8, "seed": seed,
                       "max_tokens": settings.tokens, "stream": True, "stream_options": {"include_usage": True}})
    started = time.monotonic()
    first, last, silence, reason, done, failed, tokens = None, None, 0.0, None, False, False, 0
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    try:
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        failed = answer.status != 200
        for line in answer:
            line = line.strip()
            if not line.startswith(b"data: "):
                continue
            if line == b"data: [DONE]":
                done = True
                continue
            event = json.loads(line[6:])
            failed = failed or "error" in event
            tokens = (event.get("usage") or {}).get("completion_tokens", tokens)
            for choice in event.get("choices", []):
                reason = choice.get("finish_reason") or reason
                if choice.get("delta", {}).get("content"):
                    now = time.monotonic()
                    first, silence, last = first or now - started, max(silence, now - last) if last else 0.0, now
    except (OSError, http.client.HTTPException, ValueError):
        failed = True
    finally:
        connection.close()
    whole = not failed and done and (reason == "stop" or (reason == "length" and tokens >= settings.tokens))
    return whole, tokens, first, silence


def one_load(command, settings):
    port = free_port()
    results, seconds = [], 0.0
    with Server(command(port), port):
        model = model_of(port)
        one_answer(port, model, "warming up", argparse.Namespace(tokens=8, seeds=1))
        for seed in range(1, settings.seeds + 1):
            with concurrent.futures.ThreadPoolExecutor(settings.users) as pool:
                started = time.monotonic()
                topics = [TOPICS[number % len(TOPICS)] + " " * (number // len(TOPICS)) for number in range(settings.users)]
                load = list(pool.map(lambda topic: one_answer(port, model, topic, settings, seed), topics))
                seconds += time.monotonic() - started
            results += load
            if settings.seeds > 1:
                print(f"shared_pool: seed {seed}: {sum(result[0] for result in load)} of {settings.users} whole", file=sys.stderr, flush=True)
    whole = [result for result in results if result[0]]
    firsts = [result[2] for result in results if result[2] is not None]
    return {"whole": len(whole), "tokens_per_s": sum(result[1] for result in whole) / seconds, "seconds": seconds / settings.seeds,
            "ttft_p50_s": statistics.median(firsts) if firsts else None, "longest_silence_s": max(result[3] for result in results)}


def shown(values):
    values = [value for value in values if value is not None]
    return "none" if not values else f"{statistics.median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1024)
    parser.add_argument("--users", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=250)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 2)))
    parser.add_argument("--only", default="", help="names, separated by commas")
    settings = parser.parse_args()
    commands = candidates(settings)
    if unknown := set(filter(None, settings.only.split(","))) - set(commands):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(commands)}")
    names = [name for name in commands if not settings.only or name in settings.only.split(",")]
    order = names * settings.repeat
    random.Random(1).shuffle(order)
    runs = {name: [] for name in names}
    for number, name in enumerate(order, 1):
        print(f"shared_pool: {number} of {len(order)}: {name}", file=sys.stderr, flush=True)
        runs[name].append(one_load(commands[name], settings))
    print(f"{settings.users} users, {settings.tokens} tokens asked for, {settings.cells} cells, {settings.threads} threads; median (spread) of "
          f"{settings.repeat}{f', {settings.seeds} seeds each' if settings.seeds > 1 else ''}\n")
    print("| server | whole answers | tokens/s | until the last, s | first token p50, s | longest silence, s |\n|---|---|---|---|---|---|")
    for name in names:
        whole = [run["whole"] for run in runs[name]]
        rest = [shown([run[key] for run in runs[name]]) for key in ("tokens_per_s", "seconds", "ttft_p50_s", "longest_silence_s")]
        print(f"| {name} | {min(whole)} to {max(whole)} of {settings.users * settings.seeds} | {' | '.join(rest)} |")


if __name__ == "__main__":
    main()
