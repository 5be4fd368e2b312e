#!/usr/bin/env python3
"""The policies of `fullstop gateway` on real sockets: waiting instead of being cut, several servers, deadlines, the configuration read
again. One test has a real llama-server behind it. FULLSTOP names the program, LLAMA_SERVER and MODEL the server."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

from gateway_test import DONE, FINISH, HEAD, PIECE, Program, Upstream, exchange, front_of, gateway, parse, request
from llama_server import LlamaServer

# These servers close after each answer, and say so: else their connection would be kept for a next request.
WHOLE = HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1) + PIECE + FINISH + DONE + b"0\r\n\r\n"


def status(front):
    with urllib.request.urlopen(f"{front.url}/fullstop/status", timeout=10) as page:
        return json.load(page)


def wait_for(what, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if what():
            return
        time.sleep(0.02)
    raise AssertionError("what was waited for did not come")


def no_affinity(config):
    """Requests that are all the same would else prefer one server, and by its port's luck that may never be the dead one."""
    config.write("affinity = 0\n")
    config.flush()
    return config.name


class Gate:
    """Answers wait until they are let through; `most` is how many were there at once."""

    def __init__(self):
        self.go = threading.Event()
        self.lock = threading.Lock()
        self.running = self.most = 0

    def serve(self, connection):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.go.wait(20)
        time.sleep(0.05)
        with self.lock:
            self.running -= 1
        connection.sendall(WHOLE)


class Waiting(unittest.TestCase):
    def test_no_server_gets_more_than_it_may_and_nobody_is_refused(self):
        gate = Gate()
        with Upstream(gate.serve) as upstream, gateway(upstream.url, "--max-concurrency", "2") as front:
            with concurrent.futures.ThreadPoolExecutor(10) as pool:
                answers = [pool.submit(exchange, front.address, request()) for _ in range(10)]
                wait_for(lambda: sum(status(front)["waiting"].values()) == 8)
                gate.go.set()
                heads = [parse(answer.result(30)[0]) for answer in answers]
        self.assertEqual([(head[0], head[3]) for head in heads], [(200, True)] * 10)
        self.assertEqual(gate.most, 2)
        waits = sorted(int(head[1]["fullstop-queue-ms"]) for head in heads)
        self.assertLess(waits[1], 50)
        self.assertGreater(waits[-1], waits[1] + 100, "the last ones waited for four others")

    def test_a_full_queue_is_429_and_a_long_wait_503(self):
        gate = Gate()
        with Upstream(gate.serve) as upstream, gateway(upstream.url, "--max-concurrency", "1", "--max-queue", "1", "--queue-wait", "700ms") as front:
            with concurrent.futures.ThreadPoolExecutor() as pool:
                first = pool.submit(exchange, front.address, request())
                wait_for(lambda: status(front)["running"] == 1)
                second = pool.submit(exchange, front.address, request())
                wait_for(lambda: sum(status(front)["waiting"].values()) == 1)
                code, headers, body, _ = parse(exchange(front.address, request())[0])
                self.assertEqual((code, json.loads(body)["error"]["code"]), (429, "gateway_rejected"))
                self.assertTrue(1 <= int(headers["retry-after"]) <= 60)
                code, headers, body, _ = parse(second.result(10)[0])
                stop = json.loads(body)["error"]["fullstop"]["stop"]
                self.assertEqual((code, stop["cause"], stop["limit"], stop["limit_ms"]), (503, "gateway_deadline", "queue_wait", 700))
                self.assertTrue(700 <= stop["elapsed_ms"] < 5000, stop)
                gate.go.set()
                self.assertTrue(parse(first.result(10)[0])[3])

    def test_who_leaves_the_queue_is_never_passed_on(self):
        gate = Gate()
        with Upstream(gate.serve) as upstream, gateway(upstream.url, "--max-concurrency", "1") as front:
            with concurrent.futures.ThreadPoolExecutor() as pool:
                first = pool.submit(exchange, front.address, request())
                wait_for(lambda: status(front)["running"] == 1)
                with socket.create_connection(front.address) as client:
                    client.sendall(request())
                    wait_for(lambda: sum(status(front)["waiting"].values()) == 1)
                wait_for(lambda: sum(status(front)["waiting"].values()) == 0, 2)
                gate.go.set()
                first.result(10)
                self.assertEqual(len(upstream.requests), 1)

    def test_a_waiting_stream_hears_comments_and_then_its_answer(self):
        gate = Gate()
        with Upstream(gate.serve) as upstream, gateway(upstream.url, "--max-concurrency", "1", "--heartbeat", "200ms") as front:
            with concurrent.futures.ThreadPoolExecutor() as pool:
                answers = [pool.submit(exchange, front.address, request()) for _ in range(2)]
                time.sleep(1)
                gate.go.set()
                for answer in answers:
                    _, headers, body, complete = parse(answer.result(10)[0])
                    self.assertTrue(complete)
                    self.assertEqual(headers["fullstop-heartbeat-ms"], "200")
                    self.assertGreaterEqual(body.count(b": waiting"), 2)
                    self.assertTrue(body.endswith(parse(WHOLE)[2]), "the server's bytes are unchanged behind the comments")


class Cuts(unittest.TestCase):
    def stop_of(self, serve, *words):
        with Upstream(serve) as upstream, gateway(upstream.url, *words) as front:
            _, headers, body, complete = parse(exchange(front.address, request())[0])
        self.assertFalse(complete)
        self.assertNotIn(b"[DONE]", body)
        last = [line for line in body.decode().split("\n") if line.startswith("data: ")][-1]
        return headers, json.loads(last[6:])["error"]["fullstop"]["stop"]

    def test_each_deadline_has_its_own_name_and_numbers(self):
        def flowing(connection):
            connection.sendall(HEAD)
            with contextlib.suppress(OSError):
                while True:
                    connection.sendall(PIECE)
                    time.sleep(0.05)

        def no_token(connection):
            connection.sendall(HEAD)
            connection.recv(1)

        def stalls(connection):
            connection.sendall(HEAD + PIECE)
            connection.recv(1)

        for serve, flag, limit, cause in ((flowing, "--total", "total", "gateway_deadline"), (no_token, "--first-token", "first_token", "gateway_deadline"),
                                          (stalls, "--idle", "idle", "gateway_idle_timeout")):
            with self.subTest(limit=limit):
                headers, stop = self.stop_of(serve, flag, "600ms")
                self.assertEqual((stop["cause"], stop["by"], stop["limit"], stop["limit_ms"]), (cause, "gateway", limit, 600))
                self.assertTrue(600 <= stop["elapsed_ms"] < 3000, stop)
                self.assertEqual(headers.get("fullstop-deadline-ms"), "600" if limit == "total" else None)


class Several(unittest.TestCase):
    def test_a_server_that_is_down_costs_no_answer(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            dead = f"http://127.0.0.1:{free.getsockname()[1]}"
        with Upstream(lambda c: c.sendall(WHOLE)) as upstream, tempfile.NamedTemporaryFile("w", suffix=".toml") as config, \
             front_of([dead, upstream.url], "--no-observe", "--config", no_affinity(config)) as front:
            tried_twice = 0
            for _ in range(12):
                _, headers, _, complete = parse(exchange(front.address, request())[0])
                self.assertTrue(complete)
                tried_twice += headers.get("fullstop-attempts") == "2"
            self.assertEqual(len(upstream.requests), 12, "each request once")
            self.assertEqual(tried_twice, 3, "then it is left alone")
            self.assertEqual([each["status"] for each in status(front)["upstreams"]], ["failing", "ok"])

    def test_an_answer_that_began_is_never_sent_again(self):
        def breaks(connection):
            connection.sendall(HEAD + PIECE)

        with Upstream(breaks) as one, Upstream(breaks) as two, front_of([one.url, two.url], "--no-observe") as front:
            _, _, body, complete = parse(exchange(front.address, request())[0])
            self.assertFalse(complete)
            self.assertIn(b"connection_broken", body)
            self.assertEqual(len(one.requests) + len(two.requests), 1)

    def test_the_configuration_is_read_again_and_no_stream_is_dropped(self):
        gate = Gate()
        with Upstream(gate.serve) as old, Upstream(lambda c: c.sendall(WHOLE)) as new, tempfile.TemporaryDirectory() as folder:
            file, said = pathlib.Path(folder) / "gateway.toml", pathlib.Path(folder) / "stderr"
            file.write_text(f'[[upstream]]\nurl = "{old.url}"\nlearn = false\n')
            with said.open("w") as stderr, subprocess.Popen([os.environ["FULLSTOP"], "gateway", "--config", str(file), "--listen", "127.0.0.1:0"],
                                                            stdout=subprocess.PIPE, stderr=stderr, text=True) as process:
                try:
                    address = ("127.0.0.1", int(process.stdout.readline().rsplit(":", 1)[1]))
                    with concurrent.futures.ThreadPoolExecutor() as pool:
                        running = pool.submit(exchange, address, request())
                        wait_for(lambda: len(old.requests) == 1)
                        file.write_text(f'[[upstream]]\nurl = "{new.url}"\nurll = 1\n')
                        process.send_signal(signal.SIGHUP)
                        wait_for(lambda: "gateway.toml:3: upstream.urll: unknown key; going on" in said.read_text())
                        file.write_text(f'[[upstream]]\nurl = "{new.url}"\nlearn = false\n')
                        process.send_signal(signal.SIGHUP)
                        wait_for(lambda: f"SIGHUP: relaying to {new.url}" in said.read_text())
                        time.sleep(0.1)
                        self.assertTrue(parse(exchange(address, request())[0])[3])
                        self.assertEqual((len(old.requests), len(new.requests)), (1, 1))
                        gate.go.set()
                        self.assertTrue(parse(running.result(10)[0])[3], "the stream of the server that is gone from the file")
                finally:
                    gate.go.set()
                    process.kill()

    def test_check_names_what_can_cut_an_answer(self):
        result = subprocess.run([os.environ["FULLSTOP"], "gateway", "--upstream", "http://127.0.0.1:9", "--total", "60s", "--check"],
                                capture_output=True, text=True, timeout=20, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("60 s from arrival to the end, waiting included (gateway_deadline, total)", result.stdout)


SPELLINGS = ("/v1/chat/completions", "/v1/chat/completion%73", "/v1/chat/%63ompletions", "/v1/chat/completions/", "/v1/chat/completions;x", "/v1/chat/completions#",
             "//v1/./chat/completions", "http://x/v1/chat/completions")


@contextlib.contextmanager
def configured(text, url):
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        config.write(f"{text}\n[[upstream]]\nurl = \"{url}\"\nlearn = false\n")
        config.flush()
        with Program(os.environ["FULLSTOP"], "gateway", "--config", config.name, "--listen", "127.0.0.1:0", "--quiet") as front:
            yield front


class NothingSlipsPast(unittest.TestCase):
    def test_a_budget_holds_on_every_spelling_of_a_path(self):
        asked = {"stream": True, "max_tokens": 5000, "messages": [{"role": "user", "content": "x" * 500}]}
        with Upstream(lambda c: c.sendall(WHOLE)) as upstream, configured('[budget.per_key]\ntokens = 10\nwindow = "1h"', upstream.url) as front:
            for path in (*SPELLINGS, "/v1/messages", "/v1/responses"):
                self.assertEqual(parse(exchange(front.address, request(asked, path))[0])[0], 429, path)
            self.assertEqual(upstream.requests, [])

    def test_a_limit_on_length_holds_in_every_spelling(self):
        common = '"stream":true,"messages":[]'
        lowered = ('"max_tokens":5000', '"max_tokens":1e30', '"max_tokens":5000.5', '"max_tokens":-1', '"max_tokens":"5000"', '"max_tokens":null',
                   '"max\\u005ftokens":5000', '"options":{"num_predict":9}', '"max_tokens":1e400', '"n_predict":5000')
        refused = ('"max_tokens":1,"max_tokens":5000', '"max_tokens":1,"max\\u005ftokens":5000', '"x":NaN,"max_tokens":5000', '"max_tokens":5000/**/')
        with Upstream(lambda c: c.sendall(WHOLE)) as upstream, configured("[output]\nmax_tokens = 64", upstream.url) as front:
            send = lambda body: parse(exchange(front.address, (
                f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body)[0])
            for member in lowered:
                upstream.requests.clear()
                status_code, headers, _, _ = send(f"{{{common},{member}}}".encode())
                sent = json.loads(upstream.requests[0].partition(b"\r\n\r\n")[2])
                self.assertEqual((status_code, headers["fullstop-effective-max-tokens"], sent["max_tokens"]), (200, "64", 64), member)
                self.assertLessEqual(sent.get("n_predict", 0), 64)
            upstream.requests.clear()
            for body in [f"{{{common},{member}}}".encode() for member in refused] + [b'\xef\xbb\xbf{"max_tokens":5000}', b'{"max_tokens":5000}x']:
                self.assertEqual(send(body)[0], 400, body)
            self.assertEqual(upstream.requests, [])

    def test_paths_that_are_not_known_are_refused_or_relayed(self):
        with Upstream(lambda c: c.sendall(WHOLE)) as upstream:
            with configured("", upstream.url) as front:
                code, _, body, _ = parse(exchange(front.address, request(path="/v1/complete"))[0])
                self.assertEqual((code, "[paths] other" in json.loads(body)["error"]["message"]), (403, True))
                self.assertEqual(parse(exchange(front.address, request(path="/v1/embeddings"))[0])[0], 200)
                for target in ("http://x/metrics", "//metrics", "/metrics/"):
                    got, _ = exchange(front.address, f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
                    self.assertIn(b"fullstop_gateway_", got, target)
                self.assertEqual([r.split(b"\r\n")[0] for r in upstream.requests], [b"POST /v1/embeddings HTTP/1.1"])
            with configured('[paths]\nother = "relay"', upstream.url) as front:
                self.assertEqual(parse(exchange(front.address, request(path="/v1/complete"))[0])[0], 200)

    def test_one_huge_limit_shuts_nobody_out_of_the_queue(self):
        gate = Gate()
        with Upstream(gate.serve) as upstream, gateway(upstream.url, "--max-concurrency", "1") as front, concurrent.futures.ThreadPoolExecutor(12) as pool:
            asked = [{"messages": [], "stream": True, "max_tokens": tokens} for tokens in [10, 10_000_000, 10**30] + [10] * 8]
            answers = [pool.submit(exchange, front.address, request(body)) for body in asked]
            wait_for(lambda: sum(status(front)["waiting"].values()) == 10)
            gate.go.set()
            self.assertEqual([parse(answer.result(30)[0])[0] for answer in answers], [200] * 11)


class Records(unittest.TestCase):
    def test_each_answer_is_kept_and_found_by_its_request_id(self):
        def serve(connection):
            connection.sendall(HEAD + PIECE if b"cut" in upstream.requests[-1] else WHOLE)

        with tempfile.TemporaryDirectory() as folder, Upstream(serve) as upstream:
            store = pathlib.Path(folder) / "answers.sqlite"
            with gateway(upstream.url, "--store", store) as front:
                for name in ("whole-1", "cut-1"):
                    exchange(front.address, request().replace(b"Host: x\r\n", f"Host: x\r\nX-Request-Id: {name}\r\n".encode()))
                front.process.send_signal(signal.SIGTERM)
                self.assertEqual(front.process.wait(10), 0)
            with contextlib.closing(sqlite3.connect(store)) as database:
                rows = dict(database.execute("SELECT id, recorded FROM records"))
                text = database.execute("SELECT group_concat(text) FROM records").fetchone()[0]
            self.assertEqual(sorted(rows), ["cut-1", "whole-1"])
            self.assertIn("natural_end", rows["whole-1"])
            self.assertIn("connection_broken", rows["cut-1"])
            self.assertFalse(text.strip(","), "what was said is not kept")
            listed = subprocess.run([os.environ["FULLSTOP"], "report", "--list", "--store", str(store)], capture_output=True, text=True, timeout=20, check=False)
            self.assertIn("2 answers", listed.stdout)
        result = subprocess.run([os.environ["FULLSTOP"], "gateway", "--upstream", "http://127.0.0.1:9", "--store", "/proc/none/x.sqlite"],
                                capture_output=True, text=True, timeout=20, check=False)
        self.assertEqual(result.returncode, 2, result.stderr)


class SmallPool(unittest.TestCase):
    """Eight users in a pool that holds three of their answers."""

    TOKENS = 80
    TOPICS = ("bread", "rivers", "bees", "a farm", "the moon", "ships", "a tower", "winter")

    def ask(self, url, topic):
        body = {"messages": [{"role": "user", "content": f"Write a long story about {topic}."}], "temperature": 0, "seed": 1, "max_tokens": self.TOKENS,
                "stream": True}
        address = ("127.0.0.1", int(url.rsplit(":", 1)[1]))
        status_code, _, text, complete = parse(exchange(address, request(body), timeout=240)[0])
        return status_code == 200 and complete and b"[DONE]" in text and b'"error"' not in text

    def whole(self, url):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            return sum(pool.map(lambda topic: self.ask(url, topic), self.TOPICS))

    def test_a_server_with_keys_is_learned_with_the_key_that_is_named(self):
        os.environ["POLICY_TEST_KEY"] = "sk-policy-7"
        with LlamaServer("-c", "512", "-np", "2", "-t", "1", "--api-key", "sk-policy-7") as server:
            with front_of([server.url], "--api-key-env", "POLICY_TEST_KEY") as front, front_of([server.url]) as keyless:
                wait_for(lambda: status(front)["upstreams"][0]["slots"] == 2)
                with urllib.request.urlopen(f"{front.url}/metrics", timeout=10) as page:
                    self.assertNotIn("sk-policy-7", page.read().decode() + json.dumps(status(front)))
                # A client without a key is not let in by the gateway's.
                self.assertEqual(parse(exchange(front.address, request({"messages": [{"role": "user", "content": "x"}]}))[0])[0], 401)
                time.sleep(1)  # it has asked all its questions by then
                self.assertIsNone(status(keyless)["upstreams"][0]["slots"], "without a key it is told nothing")

    def test_the_pool_is_learned_and_nobody_is_cut(self):
        # One thread: several would wait for each other by spinning, which on a busy machine takes ten times as long.
        with LlamaServer("-c", "512", "-np", "8", "-kvu", "-t", "1") as server, front_of([server.url]) as front:
            wait_for(lambda: status(front)["upstreams"][0]["kv_tokens"])
            learned = status(front)["upstreams"][0]
            self.assertEqual((learned["slots"], learned["kv_tokens"]), (8, 512))
            direct = self.whole(server.url)
            through = self.whole(front.url)
            with urllib.request.urlopen(f"{front.url}/metrics", timeout=10) as page:
                metrics = page.read().decode()
        print(f"\n  8 users, {self.TOKENS} tokens each, 512 cells: {direct} of 8 whole directly, {through} of 8 through the gateway", flush=True)
        self.assertEqual(direct, 0, "the pool was large enough: the test shows nothing")
        self.assertEqual(through, 8, metrics)


if __name__ == "__main__":
    unittest.main(verbosity=2)
