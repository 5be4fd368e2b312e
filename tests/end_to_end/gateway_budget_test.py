#!/usr/bin/env python3
"""Budgets that several gateways share, with a real Redis: never overspent, also when one gateway and then the store are killed. What is
used is counted where it is used, by the server behind. FULLSTOP names the program, SOURCE its source folder."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import tempfile
import threading
import time
import unittest
import unittest.mock
import urllib.request

from gateway_test import KeepingUpstream, Program, exchange, parse, request
from gateway_tls_test import make_certificate
from redis_store import Store, free_port

PROMPT = 10  # tokens that the server says a prompt had; the gateways set aside more for it


class Ledger:
    """What is used, and what may still be: everything that was asked for and has not ended."""

    def __init__(self):
        self.lock = threading.Lock()
        self.used = self.open = self.peak = self.answers = 0

    def begin(self, most):
        with self.lock:
            self.open += most
            self.peak = max(self.peak, self.used + self.open)

    def end(self, most, used):
        with self.lock:
            self.open -= most
            self.used += used
            self.answers += 1


class Server(KeepingUpstream):
    """Answers take `seconds`, and use some of the tokens that they may, or all with `share` 1."""

    def __init__(self, seconds=0.02, share=None):
        self.ledger, self.keys = Ledger(), {}
        self.seconds, self.share = seconds, share
        self.random = random.Random(1)
        super().__init__(self.answer)

    def answer(self, connection, asked):
        head, _, body = asked.partition(b"\r\n\r\n")
        if not body:
            return  # a gateway that was killed before it asked
        most = json.loads(body)["max_tokens"]
        key = re.search(rb"(?i)authorization: (\S+ )?(\S+)", head)
        ledgers = [self.ledger, self.keys.setdefault(key[2].decode() if key else "", Ledger())]
        for ledger in ledgers:
            ledger.begin(PROMPT + most)
        time.sleep(self.seconds)
        tokens = int(most * (self.random.random() if self.share is None else self.share))
        for ledger in ledgers:
            ledger.end(PROMPT + most, PROMPT + tokens)
        text = json.dumps({"choices": [{"index": 0, "message": {"content": "x."}, "finish_reason": "stop"}],
                           "usage": {"prompt_tokens": PROMPT, "completion_tokens": tokens}}).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(text) + text)


@contextlib.contextmanager
def gateways(count, server, store, budgets, shared="", up=True):
    """`count` gateways with one configuration; its file is `.config` of each."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        config = pathlib.Path(folder) / "gateway.toml"
        common = f'[budget.shared]\nurl = "{store}"\ntimeout = "2s"\n{shared}\n' if store else ""
        text = f'{budgets}\n{common}[[upstream]]\nurl = "{server.url}"\nlearn = false\n'
        config.write_text(text)
        out = [stack.enter_context(Program(os.environ["FULLSTOP"], "gateway", "--config", config, "--listen", "127.0.0.1:0", "--quiet"))
               for _ in range(count)]
        for each in out:
            each.config = config
            wait_for(lambda each=each: not (store and up) or shared_budgets(each)["status"] == "up")
        yield out


def window(name, tokens, length="1h", path=None):
    return f'[budget.{name}]\n' + f'tokens = {tokens}\nwindow = "{length}"\n' if path is None else \
        f'[[budget.{name}]]\npath = "{path}"\ntokens = {tokens}\nwindow = "{length}"\n'


def page(front, path):
    with urllib.request.urlopen(front.url + path, timeout=10) as answer:
        return answer.read().decode()


def shared_budgets(front):
    return json.loads(page(front, "/fullstop/status"))["shared_budgets"]


def metric(front, name):
    return float(re.search(rf"^{re.escape('fullstop_gateway_budget_' + name)} (\S+)$", page(front, "/metrics"), re.M)[1])


def wait_for(what, seconds=10):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if what():
            return
        time.sleep(0.02)
    raise AssertionError("what was waited for did not come")


def ask(front, tokens, key=None):
    body = request({"messages": [{"role": "user", "content": "x"}], "max_tokens": tokens})
    if key:
        body = body.replace(b"Host: x\r\n", f"Host: x\r\nAuthorization: Bearer {key}\r\n".encode())
    code, headers, text, complete = parse(exchange(front.address, body)[0])
    assert complete, text
    return code, headers, text.decode()


class Sharing(unittest.TestCase):
    def test_two_gateways_never_use_more_than_one_budget(self):
        with Store() as store, Server() as server:
            budgets = window("overall", 20000) + window("per_key", 12000) + window("route", 18000, path="/v1/chat/completions")
            with gateways(2, server, store.url, budgets) as fronts:
                draw = random.Random(2)
                wishes = [(fronts[i % 2], draw.randrange(50, 400), draw.choice(("sk-one", "sk-two"))) for i in range(500)]
                with concurrent.futures.ThreadPoolExecutor(24) as pool:
                    codes = [answer[0] for answer in pool.map(lambda wish: ask(*wish), wishes)]
                self.assertEqual(set(codes), {200, 429})
                looking = store.client()
                names = looking("KEYS", "*")
                self.assertTrue(names and all(name.startswith("{fullstop}:") and "sk-" not in name for name in names), names)
                self.assertTrue(all(0 < looking("PTTL", name) <= 3_720_000 for name in names), "all of them expire")
                wait_for(lambda: looking("HGET", "{fullstop}:route:/v1/chat/completions:3600000", "reserved") == "0")
                spent = int(looking("HGET", "{fullstop}:route:/v1/chat/completions:3600000", "spent"))
                looking.close()
                asks = [sum(metric(front, f'asks_total{{outcome="{word}"}}') for front in fronts) for word in ("granted", "refused")]
            ledger = server.ledger
            print(f"\n  500 requests through 2 gateways: {codes.count(200)} answered, {ledger.used} of 18000 tokens used, never more than {ledger.peak} open",
                  flush=True)
            self.assertLessEqual(ledger.peak, 18000)
            self.assertGreater(ledger.used, 15000, "and most of it is used")
            self.assertEqual(spent, ledger.used, "the store counted what was used, to the token")
            for key in ("sk-one", "sk-two"):
                self.assertLessEqual(server.keys[key].peak, 12000)
            self.assertEqual(asks[0], ledger.answers)
            self.assertGreater(asks[1], 0)

    def test_without_a_store_each_has_a_budget_of_its_own(self):
        with Server(share=1) as server, gateways(2, server, None, window("overall", 2000)) as fronts:
            codes = [ask(fronts[i % 2], 300)[0] for i in range(20)]
        self.assertEqual(set(codes), {200, 429})
        self.assertGreater(server.ledger.used, 2000, "so that the test above shows something")

    def test_a_gateway_killed_under_load_overspends_nothing_and_the_other_goes_on(self):
        with Store() as store, Server(seconds=0.1, share=1) as server:
            with gateways(2, server, store.url, window("overall", 30000)) as (dying, living):
                results = []

                def load(front):
                    while len(results) < 2000:
                        try:
                            results.append((front is living, ask(front, 200)[0]))
                        except (OSError, AssertionError, IndexError, ValueError):
                            return  # it was killed
                        if results[-1][1] == 429:
                            return

                with concurrent.futures.ThreadPoolExecutor(16) as pool:
                    users = [pool.submit(load, front) for front in (dying, living) for _ in range(8)]
                    wait_for(lambda: len(results) > 40)
                    dying.process.kill()
                    at_kill = len(results)
                    for user in users:
                        user.result(30)
                self.assertGreater(sum(1 for lives, code in results[at_kill:] if lives and code == 200), 10, "the other went on")
                self.assertLessEqual(server.ledger.peak, 30000)
                looking = store.client()
                name = "{fullstop}:overall:3600000"
                held = {field: int(value) for field, value in looking.pairs("HGETALL", name).items() if field[0] == "t"}
                self.assertTrue(1 <= len(held) <= 8, "what the dead one had set aside still counts")
                self.assertEqual(int(looking("HGET", name, "reserved")), sum(held.values()))
                spent = int(looking("HGET", name, "spent"))
                print(f"\n  killed with {len(held)} answers under way: {sum(held.values())} tokens stay set aside; {server.ledger.used} of 30000 used", flush=True)
                # A minute later (the test moves their ends, not the clock) they count as used, for one window.
                leases = looking.pairs("ZRANGE", f"{name}:leases", 0, -1, "WITHSCORES")
                now = time.time() * 1000
                self.assertTrue(all(now + 30_000 < float(end) < now + 61_000 for end in leases.values()), leases)
                for member in leases:
                    looking("ZADD", f"{name}:leases", 1, member)
                more = PROMPT + 20 if ask(living, 20)[0] == 200 else 0
                wait_for(lambda: looking("HGET", name, "reserved") == "0")
                self.assertEqual(int(looking("HGET", name, "spent")), spent + sum(held.values()) + more)
                looking.close()

    def test_a_killed_store_is_told_and_each_policy_does_what_it_says(self):
        with Store() as store, Server(seconds=0.3, share=1) as server:
            budgets = window("overall", 3000)
            with gateways(2, server, store.url, budgets) as opens, gateways(1, server, store.url, budgets, 'on_loss = "fail_closed"') as (closed,):
                self.assertEqual(ask(closed, 300)[0], 200)
                with concurrent.futures.ThreadPoolExecutor(20) as pool:
                    running = [pool.submit(ask, front, 300) for front in (opens[0], closed)]
                    wait_for(lambda: server.ledger.open == 2 * (PROMPT + 300))
                    store.kill()
                    self.assertEqual([answer.result(10)[0] for answer in running], [200, 200], "answers under way end in peace")
                    wait_for(lambda: all(shared_budgets(front)["status"] == "down" for front in (*opens, closed)))
                    code, headers, text = ask(closed, 300)
                    self.assertEqual((code, headers["retry-after"]), (503, "5"))
                    error = json.loads(text)["error"]
                    self.assertEqual(error["fullstop"]["stop"]["cause"], "gateway_rejected")
                    self.assertIn(f"the store of shared budgets at 127.0.0.1:{store.port}/0 does not answer", error["message"])
                    before = server.ledger.used
                    codes = list(pool.map(lambda i: ask(opens[i % 2], 300)[0], range(40)))
                self.assertEqual(set(codes), {200, 429}, "own counts decide")
                passed = server.ledger.used - before
                self.assertGreater(passed, 3000, "so that the two together may use more than one budget")
                self.assertLessEqual(passed + PROMPT + 300, 2 * 3000, "and at most two, with what was used before")
                self.assertEqual(metric(closed, 'asks_total{outcome="lost_refused"}'), 1)
                lost = sum(metric(front, 'asks_total{outcome="lost_passed"}') for front in opens)
                self.assertEqual(lost, codes.count(200))
                # It is back, with nothing remembered: it hears what was used meanwhile.
                store.start()
                wait_for(lambda: all(shared_budgets(front)["status"] == "up" and shared_budgets(front)["settlements_kept"] == 0 for front in (*opens, closed)))
                looking = store.client()
                told = int(looking("HGET", "{fullstop}:overall:3600000", "spent"))
                looking.close()
                print(f"\n  store killed: fail_closed refused, fail_open passed {codes.count(200)} of 40 ({passed} tokens, budget 3000, 2 gateways); "
                      f"told to the new store: {told}", flush=True)
                self.assertEqual(told, passed + 2 * (PROMPT + 300), "those that ended while it was away too")
                self.assertEqual(ask(closed, 300)[0], 429)

    def test_a_store_that_hangs_is_waited_for_once(self):
        with Store() as store, Server() as server, gateways(1, server, store.url, window("overall", 3000)) as (front,):
            store.stop_answering()
            begun = time.monotonic()
            self.assertEqual(ask(front, 100)[0], 200)
            waited = time.monotonic() - begun
            begun = time.monotonic()
            self.assertEqual(ask(front, 100)[0], 200)
            again = time.monotonic() - begun
            self.assertTrue(1.9 < waited < 4 and again < 1, f"waited {waited:.2f} s, then {again:.2f} s")
            self.assertIn("does not answer", shared_budgets(front)["detail"])
            store.go_on()
            wait_for(lambda: shared_budgets(front)["status"] == "up" and shared_budgets(front)["settlements_kept"] == 0)
            looking = store.client()
            self.assertEqual(int(looking("HGET", "{fullstop}:overall:3600000", "spent")), server.ledger.used, "also what it may have heard of twice")
            self.assertEqual(looking("HGET", "{fullstop}:overall:3600000", "reserved"), "0")
            looking.close()

    def test_a_store_that_hangs_holds_up_no_end(self):
        with Store() as store, Server(seconds=0.2) as server, gateways(1, server, store.url, window("overall", 3000)) as (front,):
            with concurrent.futures.ThreadPoolExecutor() as pool:
                last = pool.submit(ask, front, 300)
                wait_for(lambda: server.ledger.open > 0)
                store.stop_answering()
                front.process.send_signal(signal.SIGTERM)
                self.assertEqual(last.result(10)[0], 200)
            self.assertEqual(front.process.wait(5), 0)

    def test_passwords_reloads_and_the_end(self):
        with Store(password="open-sesame") as store, Server(seconds=0.4, share=1) as server:
            with gateways(1, server, store.url + "/5", window("overall", 3000)) as (front,):
                self.assertNotIn("sesame", page(front, "/fullstop/status") + page(front, "/metrics"))
                front.config.write_text(front.config.read_text().replace("sesame", "barley"))
                with concurrent.futures.ThreadPoolExecutor() as pool:
                    running = pool.submit(ask, front, 300)
                    wait_for(lambda: server.ledger.open > 0)
                    front.process.send_signal(signal.SIGHUP)
                    wait_for(lambda: "refuses the user or password (WRONGPASS)" in shared_budgets(front)["detail"])
                    self.assertEqual(running.result(10)[0], 200)
                looking = store.client()
                looking("SELECT", 5)
                wait_for(lambda: looking("HGET", "{fullstop}:overall:3600000", "spent") == str(PROMPT + 300))  # told to the store that was asked
                front.config.write_text(front.config.read_text().replace("barley", "sesame"))
                front.process.send_signal(signal.SIGHUP)
                wait_for(lambda: shared_budgets(front)["status"] == "up")
                looking("SCRIPT", "FLUSH")
                with concurrent.futures.ThreadPoolExecutor() as pool:
                    last = pool.submit(ask, front, 300)
                    wait_for(lambda: server.ledger.open > 0)
                    front.process.send_signal(signal.SIGTERM)
                    self.assertEqual(last.result(10)[0], 200)
                self.assertEqual(front.process.wait(10), 0)
                self.assertEqual(looking.pairs("HGETALL", "{fullstop}:overall:3600000")["spent"], str(2 * (PROMPT + 300)), "a drain tells the last end")
                looking.close()


    def test_tls_is_spoken_and_the_certificate_checked(self):
        with tempfile.TemporaryDirectory() as folder, Server() as server:
            certificate, key = make_certificate(pathlib.Path(folder))
            port = free_port()
            with Store("--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key), "--tls-auth-clients", "no"):
                with unittest.mock.patch.dict(os.environ, SSL_CERT_FILE=str(certificate)):
                    with gateways(1, server, f"rediss://127.0.0.1:{port}", window("overall", 3000)) as (front,):
                        self.assertEqual(ask(front, 100)[0], 200)
                        self.assertEqual(metric(front, 'asks_total{outcome="granted"}'), 1)
                with gateways(1, server, f"rediss://127.0.0.1:{port}", window("overall", 3000), 'on_loss = "fail_closed"', up=False) as (front,):
                    wait_for(lambda: "certificate" in shared_budgets(front)["detail"])
                    self.assertEqual(ask(front, 100)[0], 503)


class Script(unittest.TestCase):
    """The text that the gateways send, on short windows."""

    @classmethod
    def setUpClass(cls):
        header = pathlib.Path(os.environ["SOURCE"], "src/adapters/redis/budget_lua.h").read_text(encoding="utf-8")
        cls.text = header.split('R"lua(')[1].split(')lua"')[0]
        cls.store = Store()
        cls.store.__enter__()
        cls.addClassCleanup(cls.store.__exit__)

    def setUp(self):
        self.redis = self.store.client()
        self.redis("FLUSHALL")
        self.addCleanup(self.redis.close)

    def call(self, what, name, tokens=0, used=0, windows=(("w", 600, 1000),), lease=10_000, unknown="add"):
        keys = [key for window, _, _ in windows for key in (window, window + ":leases")]
        limits = [value for _, length, limit in windows for value in (length, limit)]
        return self.redis("EVAL", self.text, len(keys), *keys, what, name, tokens, lease, used, unknown, *limits)

    def counts(self, window="w"):
        """After checking that sums and parts agree."""
        fields = {name: value for name, value in self.redis.pairs("HGETALL", window).items() if name[0] != "x"}
        parts = {kind: sum(int(value) for name, value in fields.items() if re.fullmatch(rf"{kind}.+", name) and name not in ("step", "spent"))
                 for kind in ("s", "t")}
        self.assertEqual((int(fields["spent"]), int(fields["reserved"])), (parts["s"], parts["t"]), fields)
        return int(fields["reserved"]), int(fields["spent"])

    def test_a_window_moves_on_and_says_when(self):
        windows = (("w", 1500, 1000),)
        self.assertEqual(self.call("reserve", "a", 1000, windows=windows), [1])
        self.assertEqual(self.call("settle", "a", 1000, 900, windows=windows), [1])
        granted, index, left, wait = self.call("reserve", "b", 200, windows=windows)
        self.assertEqual((granted, index, left), (0, 1, 100))
        self.assertTrue(0 < wait <= 1500, wait)
        self.assertEqual(self.call("reserve", "c", 1001, windows=windows)[3], -1, "it can never fit")
        time.sleep(wait / 1000)
        self.assertEqual(self.call("reserve", "b", 200, windows=windows), [1], "when it said it would fit")
        self.assertEqual(self.counts(), (200, 0))

    def test_all_windows_or_none(self):
        windows = (("all", 60_000, 1000), ("key", 60_000, 300), ("route", 60_000, 500))
        self.assertEqual(self.call("reserve", "a", 250, windows=windows), [1])
        self.assertEqual(self.call("reserve", "b", 100, windows=windows)[:3], [0, 2, 50])
        self.assertEqual([self.counts(name)[0] for name, _, _ in windows], [250, 250, 250])
        self.call("settle", "a", 250, 20, windows=windows)
        self.assertEqual([self.counts(name) for name, _, _ in windows], [(0, 20)] * 3)

    def test_of_several_that_refuse_the_longest_wait_is_told(self):
        windows = (("short", 20_000, 500), ("long", 60_000, 500), ("other", 20_000, 490))
        self.call("reserve", "a", 450, windows=windows)
        self.call("settle", "a", 450, 450, windows=windows)
        granted, index, left, wait = self.call("reserve", "b", 100, windows=windows)
        self.assertEqual((granted, index, left), (0, 2, 50))
        self.assertTrue(50_000 < wait <= 60_000, wait)
        self.assertEqual(self.call("reserve", "b", 495, windows=windows)[1::2], [3, -1], "never is longer than any wait")

    def test_told_twice_counts_once(self):
        for _ in range(2):
            self.assertEqual(self.call("reserve", "a", 700), [1])
        self.assertEqual(self.counts(), (700, 0))
        self.call("settle", "a", 700, 50)
        self.call("settle", "a", 700, 50, unknown="skip")
        self.assertEqual(self.counts(), (0, 50))
        self.call("settle", "never-heard-of", 700, 70)
        self.assertEqual(self.counts(), (0, 120))

    def test_a_dead_gateways_reservation_counts_as_spent_and_is_gone_after_a_window(self):
        self.call("reserve", "dead", 400, lease=60)
        self.call("reserve", "late", 500, lease=60)
        time.sleep(0.08)
        self.assertEqual(self.call("reserve", "b", 200)[:3], [0, 1, 100])
        self.assertEqual(self.counts(), (0, 900))
        self.call("renew", "late", 500)
        self.assertEqual(self.counts(), (0, 900), "it counts once")
        self.call("settle", "late", 500, 30)
        self.assertEqual(self.counts(), (0, 430), "it was alive after all")
        time.sleep(0.65)
        self.call("reserve", "c", 1, lease=60)
        self.call("settle", "c", 1, 0, lease=60)
        self.assertEqual(self.counts(), (0, 0))
        self.assertFalse([name for name in self.redis.pairs("HGETALL", "w") if name[0] in "tx"])
        time.sleep(0.6 + 2 * 0.06 + 0.1)
        self.assertEqual(self.redis("KEYS", "*"), [], "keys expire by themselves")

    def test_renewals_keep_a_long_answer_and_teach_a_store_that_forgot(self):
        self.call("reserve", "a", 400, lease=500)
        for _ in range(4):
            time.sleep(0.15)
            self.call("renew", "a", 400, lease=500)
        self.assertEqual(self.counts(), (400, 0))
        self.redis("FLUSHALL")
        self.call("renew", "a", 400)
        self.assertEqual(self.counts(), (400, 0))

    def test_whatever_comes_the_limit_holds_and_the_sums_agree(self):
        draw = random.Random(int(os.environ.get("SEED", "3")))
        held, spent = {}, []  # with their times: what was used within less than a window never exceeds the limit
        for i in range(1500):
            if draw.random() < 0.5:
                tokens = draw.randrange(1, 400)
                if self.call("reserve", str(i), tokens) == [1]:
                    held[str(i)] = tokens
            elif held:
                name = draw.choice(list(held))
                used = draw.randrange(0, held[name] + 1)
                spent.append((time.monotonic(), used))
                self.call("settle", name, held.pop(name), used)
            if i % 10 == 0 and self.redis("EXISTS", "w"):
                reserved, counted = self.counts()
                self.assertEqual(reserved, sum(held.values()))
                self.assertLessEqual(reserved + counted, 1000)
                now = time.monotonic()
                self.assertLessEqual(reserved + sum(used for at, used in spent if now - at < 0.6 - 0.02), 1000, "a window moves in steps of a sixtieth")


if __name__ == "__main__":
    unittest.main(verbosity=2)
