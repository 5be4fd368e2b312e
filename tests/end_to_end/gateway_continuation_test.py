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
import time
import unittest
import urllib.request

from gateway_test import Program
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
