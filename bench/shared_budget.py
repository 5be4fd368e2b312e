#!/usr/bin/env python3
"""What budgets shared through a Redis cost, and whether they hold for long.

    bench/shared_budget.py [--seconds 100] [--only cost|hold]

cost: the same requests one after another through a gateway that asks a store for three windows each, and through one that counts alone; and
how long the script takes the store. hold: three gateways, one of them killed and started again every few seconds, and the store stopped for
up to two; what is used, and may still be, is counted by the server behind and never exceeds the budget (fail_closed; a store that is
there again has forgotten nothing). FULLSTOP names the program [build/fullstop]; REDIS_SERVER the store's."""

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import random
import re
import statistics
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests" / "end_to_end"))
os.environ.setdefault("FULLSTOP", str(ROOT / "build" / "fullstop"))
from gateway_budget_test import Server, ask, gateways, metric, window  # noqa: E402
from gateway_test import Program  # noqa: E402
from redis_store import Store  # noqa: E402

LIMIT = 4000  # tokens a second of holding: about what twenty users would use


def script_cost(client):
    """Microseconds of one call, as the store counts them."""
    return float(re.search(r"cmdstat_evalsha:.*?usec_per_call=([\d.]+)", client("INFO", "commandstats"))[1])


def cost(requests=1000):
    budgets = window("overall", 10**9) + window("per_key", 10**9) + window("route", 10**9, path="/v1/chat/completions")
    with Store() as store, Server(seconds=0) as server:
        with gateways(1, server, store.url, budgets) as (shared,), gateways(1, server, None, budgets) as (alone,):
            times = {shared: [], alone: []}
            for _ in range(requests):
                for front, taken in times.items():  # in turn, so that both meet the same machine
                    begun = time.perf_counter()
                    ask(front, 10)
                    taken.append(1000 * (time.perf_counter() - begun))
            client = store.client()
            asked = 1000 * metric(shared, "ask_seconds_sum{}") / metric(shared, "ask_seconds_count{}")
            print(f"a request, median: {statistics.median(times[shared]):.2f} ms shared, {statistics.median(times[alone]):.2f} ms alone; "
                  f"of that the question {asked:.2f} ms; a call of the script {script_cost(client):.0f} us, two for each request")
            client.close()


class Gateways:
    """Three of them; each may be killed and started again while users ask."""

    def __init__(self, config):
        self._config = config
        self.fronts = [self._start() for _ in range(3)]

    def _start(self):
        return Program(os.environ["FULLSTOP"], "gateway", "--config", self._config, "--listen", "127.0.0.1:0", "--quiet").__enter__()

    def replace(self, at):
        self.fronts[at].__exit__()
        self.fronts[at] = self._start()

    def close(self):
        for front in self.fronts:
            front.__exit__()


def hold(seconds, seed=7):
    draw, codes, lock = random.Random(seed), {}, threading.Lock()
    limit, until, kills, pauses = int(LIMIT * seconds), time.monotonic() + seconds, 0, 0
    with Store() as store, Server(seconds=0.3) as server, tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "gateway.toml"
        config.write_text(f'{window("overall", limit)}[budget.shared]\nurl = "{store.url}"\non_loss = "fail_closed"\n'
                          f'[[upstream]]\nurl = "{server.url}"\nlearn = false\n')

        def user(number):
            own = random.Random(number)
            while time.monotonic() < until:
                try:
                    code = ask(running.fronts[own.randrange(3)], own.randrange(50, 400))[0]
                except (OSError, AssertionError, IndexError, ValueError):
                    code = "killed"
                with lock:
                    codes[code] = codes.get(code, 0) + 1
                if code != 200:
                    time.sleep(0.1)

        with contextlib.closing(Gateways(config)) as running, concurrent.futures.ThreadPoolExecutor(20) as pool:
            users = [pool.submit(user, number) for number in range(20)]
            while time.monotonic() < until - 3:
                time.sleep(draw.uniform(1, 3))
                if draw.random() < 0.7:
                    kills += 1
                    running.replace(draw.randrange(3))
                else:
                    pauses += 1
                    store.stop_answering()
                    time.sleep(draw.uniform(0.2, 2))
                    store.go_on()
            for each in users:
                each.result()
            time.sleep(1)
            client = store.client()
            spent, reserved = (int(client("HGET", "{fullstop}:overall:3600000", field)) for field in ("spent", "reserved"))
            client.close()
    ledger = server.ledger
    print(f"{kills} gateways killed, the store stopped {pauses} times, answers {codes}: never more than {ledger.peak} of {limit} tokens open, "
          f"{ledger.used} used; the store counts {spent} as spent and {reserved} as set aside")
    return ledger.peak <= limit and ledger.used <= spent + reserved <= limit


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--only", choices=("cost", "hold"))
    arguments = parser.parse_args()
    if arguments.only != "hold":
        cost()
    return 0 if arguments.only == "cost" or hold(arguments.seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
