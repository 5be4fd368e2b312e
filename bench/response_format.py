#!/usr/bin/env python3
"""What holding answers to a response format costs: tokens per second of one `fullstop serve`, the same number of tokens free, as
a JSON object and after a schema, in turn, so that a busy machine slows all alike. Ratios are of neighbours in time.

    bench/response_format.py [--users 1,4] [--tokens 100] [--rounds 3] [--top-p 1] [--temperature 0.8]
"""

import argparse
import concurrent.futures
import http.client
import json
import pathlib
import signal
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = {"type": "array", "minItems": 500, "items": {"type": "object", "required": ["name", "age"], "additionalProperties": False,
                                                    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}}
FORMS = {  # each goes on until max_tokens
    "free": {"type": "text"},
    "list of objects": {"type": "json_schema", "json_schema": {"name": "pets", "schema": LIST}},
    "one long text": {"type": "json_schema", "json_schema": {"name": "text", "schema": {"type": "string", "minLength": 2000}}},
}


def answer(port, form, seed, options):
    body = {"messages": [{"role": "user", "content": "Write a long story about pets, with their names and ages."}], "max_tokens": options.tokens, "seed": seed,
            "temperature": options.temperature, "top_p": options.top_p, "response_format": form}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    facts = json.loads(connection.getresponse().read())["fullstop"]
    return facts["output_tokens"]


def rate(port, form, users, seed, options):
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(users) as pool:
        tokens = sum(pool.map(lambda user: answer(port, form, seed * 100 + user, options), range(users)))
    return tokens / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", default="1,4")
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--top-p", type=float, default=1)
    options = parser.parse_args()
    server = subprocess.Popen([ROOT / "build/fullstop", "serve", "--listen", "127.0.0.1:0", "--quiet"], stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline().rsplit(":", 1)[1])
        for users in map(int, options.users.split(",")):
            rates = {name: [] for name in FORMS}
            for seed in range(options.rounds + 1):
                for name, form in FORMS.items():
                    measured = rate(port, form, users, seed, options)
                    if seed > 0:  # the first round warms up
                        rates[name].append(measured)
            for name, all_rates in rates.items():
                ratio = statistics.median(bound / free for bound, free in zip(all_rates, rates["free"]))
                print(f"{users} users, {name:>16}: {statistics.median(all_rates):6.1f} tokens/s, {ratio:.2f} of free", flush=True)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


if __name__ == "__main__":
    main()
