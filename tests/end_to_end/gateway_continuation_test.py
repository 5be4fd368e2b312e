#!/usr/bin/env python3
"""Two real llama-servers with the same model, or two `fullstop serve`, behind a gateway with `continuation`; the one that writes is
killed (-9) in the middle of its answer. The other one writes the rest: one stream, one natural end, the seam declared, nothing twice. Without the setting, and
with nobody left to go on, the client is told of the cut."""

import http.client
import json
import os
import pathlib
import signal
import tempfile
import threading
import time
import unittest
import urllib.request

from gateway_test import HEAD, KeepingUpstream, Program, chunk, exchange, parse, read_request, request, reset
from llama_server import LlamaServer

QUESTION = "Write a long story about a fox who learns to swim. Tell it slowly, with all that the other animals say."
TOKENS = 110


def front_of(servers, continuation):
    text = f"continuation = {str(continuation).lower()}\n" + "".join(f'[[upstream]]\nurl = "{server.url}"\n' for server in servers)
    with tempfile.NamedTemporaryFile("w", suffix=".toml", delete=False) as file:
        file.write(text)
    return Program(os.environ["FULLSTOP"], "gateway", "--config", file.name, "--listen", "127.0.0.1:0", "--quiet"), pathlib.Path(file.name)


def until_learned(front, count):
    """The gateway knows its servers' models about when it is ready; until then nobody could go on."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with urllib.request.urlopen(front.url + "/fullstop/status", timeout=5) as answer:
            upstreams = json.load(answer)["upstreams"]
        if sum(1 for upstream in upstreams if upstream.get("slots")) == count:
            return
        time.sleep(0.1)
    raise AssertionError(f"the gateway did not learn of its servers: {upstreams}")


class Continuation(unittest.TestCase):
    def answer(self, front, servers, kill, tokens=TOKENS):
        """Events of one streamed answer; `kill` servers die once some of it was read: first the one that writes, then the others."""
        host, port = front.address
        connection = http.client.HTTPConnection(host, port, timeout=120)
        connection.request("POST", "/v1/chat/completions", json.dumps(
            {"messages": [{"role": "user", "content": QUESTION}], "stream": True, "temperature": 0, "seed": 1, "max_tokens": tokens,
             "stream_options": {"include_usage": True}}), {"Content-Type": "application/json"})
        response = connection.getresponse()
        writer = response.getheader("Fullstop-Upstream")
        order = sorted(servers, key=lambda server: server.url.rsplit("/", 1)[1] != writer)
        events, texts = [], 0
        try:
            for line in response:
                if not line.startswith(b"data: "):
                    continue
                events.append(line[6:].strip().decode())
                texts += b'"content":"' in line
                if texts == 20 and kill:
                    for server in order[:kill]:
                        server.process.send_signal(signal.SIGKILL)
                    kill = 0
        except http.client.IncompleteRead:
            events.append("cut")
        return writer, [event if event in ("[DONE]", "cut") else json.loads(event) for event in events]

    @staticmethod
    def text_of(events):
        return "".join(choice["delta"].get("content") or "" for event in events if isinstance(event, dict) for choice in event.get("choices", []))

    def through(self, servers, kill, continuation, tokens=TOKENS):
        program, file = front_of(servers, continuation)
        self.addCleanup(file.unlink)
        with program as front:
            until_learned(front, len(servers))
            return self.answer(front, servers, kill, tokens)

    def test_the_rest_comes_from_the_other_server(self):
        with LlamaServer("-c", "2048", "-np", "2") as one, LlamaServer("-c", "2048", "-np", "2") as two:
            self.continued(one, two, TOKENS)

    def test_the_rest_comes_from_another_fullstop_serve(self):
        words = (os.environ["FULLSTOP"], "serve", "--model", os.environ["MODEL"], "--listen", "127.0.0.1:0", "--quiet", "--max-sequences", "2", "--kv-tokens", "1024")
        with Program(*words) as one, Program(*words) as two:
            self.continued(one, two, 90)

    def continued(self, one, two, tokens):
        _, whole = self.through([one, two], 0, True, tokens)
        writer, events = self.through([one, two], 1, True, tokens)
        self.assertEqual(whole[-1], "[DONE]")
        self.assertEqual(events[-1], "[DONE]", events[-3:])
        seams = [event["fullstop"]["continued"] for event in events if isinstance(event, dict) and "continued" in event.get("fullstop", {})]
        self.assertEqual(len(seams), 1)
        self.assertEqual((seams[0]["from"], seams[0]["because"]), (writer, "connection_broken"))
        self.assertNotEqual(seams[0]["to"], writer)
        text = self.text_of(events)
        begun = text.encode()[:seams[0]["at_bytes"]].decode()
        self.assertTrue(self.text_of(whole).startswith(begun), "what was delivered before is untouched")
        self.assertGreater(len(text), len(begun) + 50, "and there is a rest")
        self.assertNotIn(begun[:60], text[len(begun):], "which does not repeat it")
        reasons = [choice["finish_reason"] for event in events if isinstance(event, dict) for choice in event.get("choices", []) if choice.get("finish_reason")]
        self.assertEqual(len(reasons), 1)
        usage = [event["usage"] for event in events if isinstance(event, dict) and event.get("usage")][-1]
        self.assertLessEqual(seams[0]["at_tokens"] + usage["completion_tokens"], tokens, "the limit holds for both parts together")

    def test_without_the_setting_or_with_nobody_left_the_client_is_told(self):
        with LlamaServer("-c", "2048", "-np", "2") as one, LlamaServer("-c", "2048", "-np", "2") as two:
            writer, told = self.through([one, two], 1, False)
            left = [server for server in (one, two) if server.url.rsplit("/", 1)[1] != writer]
            _, alone = self.through(left, 1, True)
        for events in (told, alone):
            self.assertNotIn("[DONE]", events)
            stop = [event for event in events if event != "cut"][-1]["error"]["fullstop"]["stop"]
            self.assertEqual(stop["cause"], "connection_broken", stop)


TEXT = "The quick brown fox jumps over the lazy dog and runs. "


def event(content, more=""):
    return chunk('data: {"model":"m","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]%s}\n\n' % (content, more))


class ScriptedLlama(KeepingUpstream):
    """Answers a gateway's questions about itself; `answer(connection, body)` writes an answer."""

    def __init__(self, answer, slots=2):
        self._answer, self._slots = answer, slots
        super().__init__(self._talk)

    def _talk(self, connection, asked):
        while asked:
            path, body = asked.split()[1].decode(), asked.partition(b"\r\n\r\n")[2]
            pages = {"/v1/models": {"object": "list", "data": [{"id": "m", "owned_by": "llamacpp"}]},
                     "/props": {"default_generation_settings": {"n_ctx": 4096}, "total_slots": self._slots, "model_alias": "m", "build_info": "b1-x"},
                     "/slots": [{"id": i, "n_ctx": 4096, "is_processing": False} for i in range(self._slots)]}
            if path.endswith("/chat/completions"):
                return self._answer(connection, json.loads(body))
            if path == "/apply-template":
                pages[path] = {"prompt": json.loads(body)["messages"][-1]["content"]}
            text = json.dumps(pages.get(path, {})).encode()
            connection.sendall(b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (b"200 OK" if path in pages else b"404 Not Found", len(text)) + text)
            asked = read_request(connection)


class WhatOthersWrite(unittest.TestCase):
    """Limits of clients and first words of next servers that are not what they should be: one answer may end, the gateway goes on."""

    def through(self, limits, rest, slots=2, during=None):
        died, asked = threading.Event(), []

        def answer(connection, body):
            if died.is_set():
                asked.append(body)
                return connection.sendall(HEAD + rest + chunk('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n') + chunk("data: [DONE]\n\n") + b"0\r\n\r\n")
            died.set()
            connection.sendall(HEAD + b"".join(event(json.dumps(word + " ")) for word in TEXT.split()))
            return reset(connection)

        with ScriptedLlama(answer) as one, ScriptedLlama(answer) as two:
            program, file = front_of([one, two], True)
            self.addCleanup(file.unlink)
            with program as front:
                until_learned(front, 2)
                status, _, body, complete = parse(exchange(front.address, request({"messages": [{"role": "user", "content": "x"}], "stream": True, **limits}))[0])
                with urllib.request.urlopen(front.url + "/metrics", timeout=5) as page:
                    self.assertIn("fullstop_gateway_faults_total 0\n", page.read().decode())
        self.assertEqual(status, 200)
        return asked, body, complete

    def test_every_limit_reaches_the_next_server_as_what_is_left_of_it(self):
        words = len(TEXT.split())
        for limit, left in ((100, 100 - words), (100.5, 100 - words), (-1, -1), (1e30, 1e30), (2**63 - 1, 2**63 - 1), (0, 0)):
            with self.subTest(limit=limit):
                asked, body, complete = self.through({"max_tokens": limit}, event(json.dumps("REST")))
                self.assertEqual([each["max_tokens"] for each in asked], [left])
                self.assertTrue(complete and b"REST" in body and b"[DONE]" in body, body)

    def test_first_words_that_cannot_be_read_are_a_cut(self):
        delivered = json.dumps(TEXT)[:-1].encode()
        for name, content, more in (("NaN", delivered + b'REST"', b',"t":NaN'), ("half a surrogate pair", delivered + b'\\ud83d"', b""),
                                    ("a stray byte", delivered + b'\xff"', b""), ("a member twice", delivered + b'REST"', b',"choices":5')):
            with self.subTest(name=name):
                text = b'data: {"model":"m","choices":[{"index":0,"delta":{"content":' + content + b'},"finish_reason":null}]' + more + b"}\n\n"
                _, body, complete = self.through({}, b"%x\r\n" % len(text) + text + b"\r\n")
                self.assertFalse(complete)
                self.assertNotIn(b"[DONE]", body)
                self.assertIn(b'"cause":"connection_broken"', body)

    def test_a_reload_that_leaves_nobody_ends_an_answer_that_waits_between_its_parts(self):
        waits, gone = threading.Event(), threading.Event()

        def answer(connection, body):
            if body.get("user") == "busy":
                connection.sendall(HEAD + event('"x"'))
                return gone.wait(20)
            connection.sendall(HEAD + b"".join(event(json.dumps(word + " ")) for word in TEXT.split()))
            waits.wait(20)
            return reset(connection)

        with ScriptedLlama(answer, 1) as one, ScriptedLlama(answer, 1) as two:
            program, file = front_of([one, two], True)
            self.addCleanup(file.unlink)
            with program as front:
                until_learned(front, 2)
                ask = lambda **more: request({"messages": [{"role": "user", "content": "x"}], "stream": True, **more})
                got = []
                threads = [threading.Thread(target=lambda words=words: got.append(exchange(front.address, words)[0])) for words in (ask(), ask(user="busy"))]
                for thread in threads:
                    thread.start()
                    time.sleep(0.5)
                waits.set()
                time.sleep(0.5)
                file.write_text('continuation = true\n[[upstream]]\nurl = "http://127.0.0.1:9"\n')
                front.process.send_signal(signal.SIGHUP)
                threads[0].join(20)
                self.assertFalse(threads[0].is_alive(), "it still waits")
                _, _, body, complete = parse(got[0])
                self.assertFalse(complete)
                self.assertIn(b"no other server continued it: no upstream takes requests any more", body)
                gone.set()
                threads[1].join(20)


if __name__ == "__main__":
    unittest.main(verbosity=2)
