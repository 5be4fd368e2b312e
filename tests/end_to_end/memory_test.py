#!/usr/bin/env python3
"""What clients make `fullstop serve` and `fullstop gateway` hold for them has one bound for the process: who holds much and does not move
goes, who comes next gets in, and /health always answers. FULLSTOP names the program, MODEL the file."""

import concurrent.futures
import os
import socket
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
from gateway_hostile_test import SANITIZED, WHOLE, memory_mib
from gateway_test import Program, Upstream, exchange, gateway, parse, request

MIB = 1 << 20
LARGEST = 8 * MIB
BUDGET = 256  # MiB, net::kMaxHeldBytes
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


class Deaf(Upstream):
    """Takes connections and reads nothing."""

    def _run(self, connection):
        with connection:
            self._serve(connection)


def serve():
    return Program(os.environ["FULLSTOP"], "serve", "--model", os.environ["MODEL"], "--listen", "127.0.0.1:0", "--quiet", "--threads", "1",
                   "--max-sequences", "1", "--kv-tokens", "1024")


def send(address, data):
    connection = socket.create_connection(address, timeout=20)
    try:
        connection.sendall(data)
    except OSError:
        pass  # refused in the middle
    return connection


def post(path, size):
    body = b'{"messages":[{"role":"user","content":"' + b"a" * (size - 100) + b'"}]}'
    return b"POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (path, len(body)) + body


class Held(unittest.TestCase):
    def hold_unfinished(self, front, at_most):
        """Twice the budget in bodies that never come whole, from more and more connections."""
        almost = post(b"/v1/chat/completions", LARGEST)[:-1]
        before = memory_mib(front.process)
        holders, worst = [], 0
        question = request({"messages": [{"role": "user", "content": "x"}], "max_tokens": 2, "stream": True})
        for _ in range(2 * BUDGET // 8 // 8):
            holders += [send(front.address, almost) for _ in range(8)]
            for asked in (HEALTH, question):
                start = time.monotonic()
                self.assertEqual(parse(exchange(front.address, asked)[0])[0], 200)
                worst = max(worst, time.monotonic() - start)
        peak = memory_mib(front.process, "VmHWM")
        print(f"\n  {len(holders)} bodies of 8 MiB held back: {before:.0f} MiB before, at most {peak:.0f}; slowest answer {worst * 1000:.0f} ms", flush=True)
        refused = 0
        for each in holders:
            each.settimeout(0.01)
            try:
                refused += each.recv(4096).startswith(b"HTTP/1.1 503")
            except ConnectionResetError:
                refused += 1
            except TimeoutError:
                pass
            each.close()
        self.assertGreaterEqual(refused, len(holders) - BUDGET // 8)
        if not SANITIZED:
            self.assertLess(peak - before, at_most)

    def test_unfinished_bodies_keep_nobody_out_of_serve(self):
        with serve() as front:
            exchange(front.address, request({"messages": [{"role": "user", "content": "x"}], "max_tokens": 2, "stream": True}))  # the model's own memory
            self.hold_unfinished(front, 1.5 * BUDGET)

    def test_unfinished_bodies_keep_nobody_out_of_the_gateway(self):
        with Upstream(lambda c: c.sendall(WHOLE)) as upstream, gateway(upstream.url) as front:
            self.hold_unfinished(front, 1.5 * BUDGET)

    def test_bodies_under_way_are_bounded_and_held_once(self):
        stuck = threading.Event()
        for path in (b"/v1/chat/completions", b"/v1/embeddings"):
            with self.subTest(path=path), Deaf(lambda _: stuck.wait(60)) as upstream, gateway(upstream.url) as front:
                before = memory_mib(front.process)
                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    asked = list(pool.map(lambda _: send(front.address, post(path, LARGEST)), range(40)))
                time.sleep(0.5)
                grown = memory_mib(front.process, "VmHWM") - before
                self.assertEqual(parse(exchange(front.address, HEALTH)[0])[0], 200)
                small = send(front.address, post(path, 4096))
                under_way, refused = 0, 0
                for each in asked:
                    each.settimeout(0.01)
                    try:
                        got = each.recv(4096)
                        refused += got.startswith(b"HTTP/1.1 503") and b"\r\nRetry-After: " in got
                    except TimeoutError:
                        under_way += 1
                    except ConnectionResetError:
                        refused += 1
                small.settimeout(0.2)
                with self.assertRaises(TimeoutError, msg="a small one is under way too"):
                    small.recv(1)
                print(f"\n  {path.decode()}: {under_way} of 40 under way, {refused} refused, {grown:.0f} MiB more", flush=True)
                self.assertEqual(under_way + refused, 40)
                self.assertEqual(under_way, BUDGET * 3 // 4 // 8)
                for each in [*asked, small]:
                    each.close()
                if not SANITIZED:
                    self.assertLess(grown, 1.5 * BUDGET)
                deadline = time.monotonic() + 5
                while b"fullstop_memory_held_bytes 0\n" not in exchange(front.address, HEALTH.replace(b"/health", b"/metrics"))[0]:
                    self.assertLess(time.monotonic(), deadline, "what was held is let go")
                    time.sleep(0.05)
        stuck.set()


if __name__ == "__main__":
    threading.stack_size(256 * 1024)
    unittest.main(verbosity=2)
