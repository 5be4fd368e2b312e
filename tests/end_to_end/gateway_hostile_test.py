#!/usr/bin/env python3
"""`fullstop gateway` between hostile clients and dying servers, on real sockets: memory stays bounded, nobody is kept out, no client gets
bytes of another's answer, and no cut answer looks whole. FULLSTOP names the program, SCRIPTED_SERVER the server. Loads are small and end
by themselves."""

import concurrent.futures
import json
import os
import pathlib
import random
import resource
import signal
import socket
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
from gateway_test import Case, DONE, FINISH, HEAD, KeepingUpstream, PIECE, Program, Upstream, chunk, exchange, gateway, parse, read_request, request, reset

WHOLE = HEAD + PIECE + FINISH + DONE + b"0\r\n\r\n"
SANITIZED = bool(os.environ.get("SANITIZED"))  # a sanitizer's memory is not the gateway's


def memory_mib(process, what="VmRSS"):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(status.split(what + ":")[1].split()[0]) / 1024


def cpu_seconds(process):
    words = pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def open_sockets(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


class DyingServers(Case):
    def test_kill_9_in_mid_stream_leaves_no_answer_that_looks_whole(self):
        with Program(os.environ["SCRIPTED_SERVER"]) as server, gateway(server.url) as front, concurrent.futures.ThreadPoolExecutor(8) as pool:
            body = {"messages": [{"role": "user", "content": "x"}], "stream": True, "seed": 1, "max_tokens": 400}
            running = [pool.submit(exchange, front.address, request(body)) for _ in range(8)]
            time.sleep(0.7)
            os.kill(server.process.pid, signal.SIGKILL)
            for each in running:
                self.expect_cut(each.result(20)[0], "connection_broken")
            status, _, _, complete = parse(exchange(front.address, request(body))[0])
            self.assertEqual((status, complete), (502, True))
            metrics = self.pages(front.address)
        self.assertIn('cause="connection_broken",layer="transport"', metrics)
        self.assertIn('cause="engine_death",layer="runtime"', metrics)

    def test_nobody_gets_an_answer_of_another(self):
        """Servers that keep connections and misbehave on them, clients that keep theirs: every answer carries its asker's word."""
        ends = {}

        def serve(connection, first):
            dice = random.Random(hash(first))
            asked = first
            while asked:
                word = json.loads(asked.partition(b"\r\n\r\n")[2])["word"]
                piece = chunk('data: {"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}\n\n' % word)
                end = dice.choice(["keep"] * 6 + ["close", "late close", "stray", "fin", "rst", "no answer", "say close", "two lengths"])
                ends[end] = ends.get(end, 0) + 1
                whole = HEAD + piece + FINISH + DONE + b"0\r\n\r\n"
                if end == "no answer":
                    return
                if end == "say close":
                    connection.sendall(whole.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
                    return
                if end == "two lengths":
                    connection.sendall(whole.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n", 1))
                elif end in ("fin", "rst"):
                    connection.sendall(HEAD + piece)
                    return reset(connection) if end == "rst" else None
                else:
                    connection.sendall(whole + (whole.replace(word.encode(), b"evil") if end == "stray" else b""))
                if end == "close":
                    return
                if end == "late close":
                    time.sleep(dice.random() * 0.01)
                    return
                asked = read_request(connection)

        def client(address, number):
            kept, whole, cut = None, 0, 0
            for i in range(40):
                word = f"word-{number}-{i}"
                kept = kept or socket.create_connection(address, timeout=20)
                kept.sendall(request({"word": word, "stream": True}, close=False))
                got = b""
                while not got.endswith(b"0\r\n\r\n") and not (b"\r\n\r\n" in got and b"Content-Length" in got):
                    more = kept.recv(65536)
                    if not more:
                        break
                    got += more
                status, headers, body, complete = parse(got)
                self.assertNotIn(b"evil", got)
                words = {piece.split(b'"')[0] for piece in body.split(b'"content":"')[1:]}
                self.assertLessEqual(words, {word.encode()})
                if status == 200 and complete:
                    self.assertIn(word.encode(), body)
                    self.assertIn(b"[DONE]", body)
                    whole += 1
                else:
                    self.assertNotIn(b"[DONE]", body)
                    cut += 1
                if status != 200 or not complete or headers.get("connection") == "close":
                    kept.close()
                    kept = None
            if kept:
                kept.close()
            return whole, cut

        with KeepingUpstream(serve) as upstream, gateway(upstream.url) as front, concurrent.futures.ThreadPoolExecutor(12) as pool:
            results = list(pool.map(lambda n: client(front.address, n), range(12)))
        whole, cut = sum(r[0] for r in results), sum(r[1] for r in results)
        print(f"\n  {whole} whole and {cut} cut answers of 12 clients; the servers' ends: {ends}", flush=True)
        self.assertGreater(whole, 200)
        self.assertEqual(cut, ends.get("fin", 0) + ends.get("rst", 0) + ends.get("no answer", 0))


class DishonestServers(Case):
    def relayed(self, answer, path="/v1/chat/completions"):
        with Upstream(lambda c: c.sendall(answer)) as upstream, gateway(upstream.url) as front:
            got, _ = exchange(front.address, request(path=path))
            self.assertEqual(self.pages(front.address).count("fullstop_gateway_faults_total 0\n"), 1)
        return parse(got)

    def test_an_end_without_a_reason_is_not_shown(self):
        typed = lambda word, more="": "event: %s\ndata: {\"type\":\"%s\"%s}\n\n" % (word, word, more)
        text = typed("content_block_delta", ',"delta":{"type":"text_delta","text":"half"}')
        some = typed("response.output_text.delta", ',"delta":"half"')
        for path, pieces, end in (("/v1/chat/completions", PIECE, "[DONE]"), ("/v1/messages", chunk(text) + chunk(typed("message_stop")), "message_stop"),
                                  ("/v1/responses", chunk(some), "response.completed")):
            body = pieces + (DONE if end == "[DONE]" else b"")
            with self.subTest(path=path):
                status, _, got, complete = self.relayed(HEAD + body + b"0\r\n\r\n", path)
                self.assertEqual((status, complete), (200, False))
                self.assertNotIn(end.encode(), got)
                self.assertIn(b'"cause":"connection_broken"', got)

    def test_a_body_that_its_close_cuts_inside_an_event_is_cut_on_every_path(self):
        head = b"HTTP/1.0 200 OK\r\nContent-Type: %s\r\n\r\n"
        for path in ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/embeddings"):
            for kind, body in ((b"text/event-stream", b'data: {"a":1}\n\ndata: {"a'), (b"application/x-ndjson", b'{"a":1}\n{"a'), (b"application/json", b'{"a":[1')):
                with self.subTest(path=path, kind=kind):
                    self.assertFalse(self.relayed(head % kind + body, path)[3])

    def test_heads_and_codings_that_readers_may_take_differently(self):
        ok = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
        for field in (b"X: a\0b\r\n", b"X: a\rSet-Cookie: b\r\n"):
            status, headers, _, _ = self.relayed(ok + field + b"\r\n{}")
            self.assertEqual((status, headers.get("set-cookie")), (502, None))
        status, _, body, _ = self.relayed(HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n") + chunk("no gzip"))
        self.assertEqual(status, 502)
        self.assertIn(b"content-encoding gzip", body)
        status, headers, _, _ = self.relayed(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n")
        self.assertEqual((status, headers.get("content-length")), (204, None))


class Resting(Case):
    def test_a_gateway_that_has_nothing_to_do_does_nothing(self):
        with Upstream(lambda c: c.sendall(WHOLE)) as upstream, gateway(upstream.url, "--idle", "700ms") as front:
            for _ in range(20):
                exchange(front.address, request())
            time.sleep(1.2)  # every limit that was watched has passed
            cpu = lambda: sum(map(int, pathlib.Path(f"/proc/{front.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
            before = cpu()
            time.sleep(1)
            self.assertLess(cpu() - before, 0.15, "seconds of CPU in one second of rest")


class HostileClients(Case):
    def test_readers_that_stop_are_held_back_and_others_are_served(self):
        """Ten clients ask for endless streams and read nothing."""
        sent = [0]

        def serve(connection):
            connection.sendall(HEAD)
            connection.settimeout(2)
            for _ in range(3000):
                connection.sendall(PIECE * 200)
                sent[0] += len(PIECE) * 200

        with Upstream(serve) as upstream, gateway(upstream.url, "--idle", "1500ms") as front:
            clients = []
            for _ in range(10):
                client = socket.socket()
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
                client.connect(front.address)
                client.sendall(request())
                clients.append(client)
            time.sleep(1)
            with Upstream(lambda c: c.sendall(WHOLE)) as quick, gateway(quick.url) as other:
                self.assertTrue(parse(exchange(other.address, request())[0])[3])
            self.assertIn("fullstop_gateway_requests_running", self.pages(front.address))
            peak = memory_mib(front.process, "VmHWM")
            deadline = time.monotonic() + 15  # our limit on silence counts towards a client that takes nothing, too
            while 'cause="gateway_idle_timeout"' not in self.pages(front.address) and time.monotonic() < deadline:
                time.sleep(0.1)
            metrics = self.pages(front.address)
            for client in clients:
                client.close()
        print(f"\n  ten silent readers, {sent[0] / 2**20:.0f} MiB sent by the server: peak of the gateway {peak:.0f} MiB", flush=True)
        self.assertIn('cause="gateway_idle_timeout",layer="gateway"', metrics)
        if not SANITIZED:
            self.assertLess(peak, 40)

    def test_ten_thousand_idle_connections_keep_nobody_out(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        wanted = min(10000, hard - 200)
        with Upstream(lambda c: c.sendall(WHOLE)) as upstream, gateway(upstream.url) as front:
            before, idle = memory_mib(front.process), []
            try:
                for _ in range(wanted):
                    idle.append(socket.create_connection(front.address, timeout=20))
                started = time.monotonic()
                status, _, _, complete = parse(exchange(front.address, request())[0])
                took = time.monotonic() - started
                held, after = open_sockets(front.process), memory_mib(front.process)
                metrics = self.pages(front.address)
            finally:
                for client in idle:
                    reset(client)  # thousands of ports in TIME_WAIT would slow down whatever runs next
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            self.assertEqual((status, complete), (200, True))
            self.assertIn("fullstop_answers_total", metrics)
            while open_sockets(front.process) > 50 and time.monotonic() < started + 20:
                time.sleep(0.05)
            self.assertLess(open_sockets(front.process), 50, "connections of clients that left")
        print(f"\n  {wanted} idle connections (hard limit of descriptors: {hard}): {held} held, {(after - before) * 1024 / max(held, 1):.1f} KiB each, "
              f"an answer beside them after {took * 1000:.0f} ms", flush=True)
        if not SANITIZED:
            self.assertLess((after - before) * 1024 / max(held, 1), 8)
        self.assertLess(took, 5)

    def test_what_two_readers_may_understand_differently_reaches_no_server(self):
        post = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
        hidden = b"POST /hidden HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
        chunked = b"Transfer-Encoding: chunked\r\n"
        cases = {
            "a length and chunks": b"Content-Length: 4\r\n" + chunked + b"\r\n0\r\n\r\n" + hidden,
            "chunks and a length": chunked + b"Content-Length: 60\r\n\r\n0\r\n\r\n" + hidden,
            "two lengths": b"Content-Length: 0\r\nContent-Length: 60\r\n\r\n" + hidden,
            "an unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
            "a coding behind chunked": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + hidden,
            "a folded coding": b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + hidden,
            "a space before the colon": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden,
            "a chunk size that is none": chunked + b"\r\n0x0\r\n\r\n" + hidden,
            "a chunk size beyond 64 bits": chunked + b"\r\n10000000000000000\r\n\r\n" + hidden,
            "a bare line feed in a chunk extension": chunked + b"\r\n2;\nxx\r\n{}\r\n0\r\n\r\n" + hidden,
            "a bare line feed in the head": b"X: y\nContent-Length: 60\r\n\r\n" + hidden,
            "a NUL in a header": b"X: a\0b\r\n\r\n" + hidden,
            "a huge header": b"X: " + b"a" * 40000 + b"\r\n\r\n" + hidden,
            "two hosts": b"Host: y\r\nContent-Length: 0\r\n\r\n" + hidden,
        }
        with Upstream(lambda c: c.sendall(WHOLE)) as upstream, gateway(upstream.url) as front:
            for name, rest in cases.items():
                got, end = exchange(front.address, post + rest, timeout=5)
                self.assertIn(got[:12], (b"HTTP/1.1 400", b"HTTP/1.1 431", b"HTTP/1.1 501"), name)
                self.assertEqual(got.count(b"\r\n\r\n"), 1, name)
                self.assertIn(b'"message"', got, name)
                self.assertEqual(upstream.requests, [], name)
            # And a trailer does not become a header of the request that is passed on.
            exchange(front.address, post + b"Connection: close\r\n" + chunked + b"\r\n2\r\n{}\r\n0\r\nAuthorization: stolen\r\n\r\n")
            self.assertEqual(len(upstream.requests), 1)
            self.assertNotIn(b"stolen", upstream.requests[0])
            self.assertTrue(upstream.requests[0].endswith(b"content-length: 2\r\n\r\n{}"), upstream.requests[0])

    def test_pipelined_requests_are_answered_in_order(self):
        def serve(connection):
            time.sleep(0.02)
            connection.sendall(WHOLE)

        words = [request({"messages": [], "stream": True, "seed": i}, close=i == 9) for i in range(10)]
        with Upstream(serve) as upstream, gateway(upstream.url) as front:
            got, _ = exchange(front.address, b"".join(words))
            self.assertEqual(got.count(b"[DONE]"), 10)
            self.assertEqual([json.loads(r.partition(b"\r\n\r\n")[2])["seed"] for r in upstream.requests], list(range(10)))

    def test_numbers_beyond_everything_end_nothing(self):
        gate = threading.Event()

        def serve(connection):
            gate.wait(20)
            usage = 'data: {"choices":[],"usage":{"prompt_tokens":9007199254740992,"completion_tokens":-1e15}}\n\n'
            connection.sendall(HEAD + PIECE + FINISH + chunk(usage) + DONE + b"0\r\n\r\n")

        with Upstream(serve) as upstream, gateway(upstream.url) as front, concurrent.futures.ThreadPoolExecutor(12) as pool:
            numbers = [2**53] * 8 + [2**63 - 1, 10**30, -(2**63), 1e300]
            answers = [pool.submit(exchange, front.address, request({"messages": [], "stream": True, "n": 128, "max_tokens": n})) for n in numbers]
            wait_for_text(lambda: self.pages(front.address), "fullstop_gateway_requests_running{upstream=\"%s\"} 12" % upstream.url[7:])
            held = [line for line in self.pages(front.address).splitlines() if line.startswith("fullstop_gateway_tokens_held{")]
            gate.set()
            for answer in answers:
                status, _, _, complete = parse(answer.result(20)[0])
                self.assertEqual((status, complete), (200, True))
            self.assertGreater(int(held[0].split()[1]), 0)
            self.assertIsNone(front.process.poll())
            self.assertIn("fullstop_gateway_tokens_held{upstream=\"%s\"} 0\n" % upstream.url[7:], self.pages(front.address))

    def test_bodies_of_small_values_cost_no_more_than_their_bytes(self):
        """Twenty of 7.8 MiB: what read them into a tree took more than a second and 470 MiB for each."""
        small = b'{"messages":[' + b"0," * 4_000_000 + b"0]}"
        text = b'{"stream":true,"messages":[{"role":"user","content":"' + b"a" * 8_000_000 + b'"}]}'
        post = lambda body: b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        with Upstream(lambda c: c.sendall(WHOLE)) as upstream, gateway(upstream.url) as front:
            before = cpu_seconds(front.process)
            for _ in range(20):
                status, _, body, _ = parse(exchange(front.address, post(small))[0])
                self.assertEqual((status, b"JSON values" in body), (400, True))
            took = cpu_seconds(front.process) - before
            self.assertEqual(parse(exchange(front.address, post(text))[0])[0], 200)
            self.assertEqual(len(upstream.requests), 1)
            peak = memory_mib(front.process, "VmHWM")
        print(f"\n  20 bodies of 4 million values: {took * 50:.0f} ms of the processor each, peak of the gateway {peak:.0f} MiB", flush=True)
        if not SANITIZED:
            self.assertLess(took, 8)
            self.assertLess(peak, 100)

    def test_our_own_errors_are_short_and_valid_utf_8(self):
        euros = "\u20ac" * 2_000_000
        post = lambda path, body: b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        asked = [post(b"/v1/chat/completions", json.dumps({"messages": [], "fullstop": {"priority": euros}}, ensure_ascii=False).encode()),
                 post(b"/v1/\xff\xfe%zz", b"{}"), post(b"/v1/\xe2\x82", b"{}"), post(b"/%E2%82", b"{}")]
        with Upstream(lambda c: c.sendall(WHOLE)) as upstream, gateway(upstream.url) as front:
            for each in asked:
                got, _ = exchange(front.address, each)
                status, _, body, _ = parse(got)
                self.assertIn(status, (400, 403), got[:200])
                self.assertLess(len(got), 4096)
                json.loads(body.decode("utf-8"))
            self.assertEqual(upstream.requests, [])


def wait_for_text(read, text, seconds=20):
    deadline = time.monotonic() + seconds
    while text not in read():
        if time.monotonic() > deadline:
            raise AssertionError(f"{text!r} did not come")
        time.sleep(0.05)


if __name__ == "__main__":
    threading.stack_size(256 * 1024)
    unittest.main(verbosity=2)
