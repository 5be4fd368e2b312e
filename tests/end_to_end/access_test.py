#!/usr/bin/env python3
"""Who may ask `fullstop gateway` and `fullstop serve`: holders of a key, before anything of a body is read, and no web page of another
origin. What goes on to a server is looked at where it arrives. FULLSTOP names the program."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from gateway_test import DONE, FINISH, HEAD, KeepingUpstream, PIECE, exchange, parse

WHOLE = HEAD + PIECE + FINISH + DONE + b"0\r\n\r\n"
BODY = json.dumps({"messages": [{"role": "user", "content": "x"}], "stream": True, "max_tokens": 4}).encode()


def request(*headers, method="POST", path="/v1/chat/completions", host="127.0.0.1", body=BODY):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def unfinished(address, *headers):
    """The answer to a head whose body of 8 MB never comes."""
    head = request(*headers, body=b"").replace(b"Content-Length: 0", b"Content-Length: 8000000")
    return parse(exchange(address, head, timeout=10)[0])[0]


class Started:
    """A command of fullstop that listens; what it says on standard error is kept."""

    def __init__(self, *words):
        self.said = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([os.environ["FULLSTOP"], *words, "--listen", "127.0.0.1:0", "--quiet"], stdout=subprocess.PIPE, stderr=self.said, text=True)
        self.url = self.process.stdout.readline().split()[-1]
        self.address = ("127.0.0.1", int(self.url.rsplit(":", 1)[1]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)
        self.process.stdout.close()
        self.said.close()

    def errors(self):
        self.said.seek(0)
        return self.said.read()

    def status(self, *headers, **more):
        return parse(exchange(self.address, request(*headers, **more))[0])[0]


class Access(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.keys = pathlib.Path(self.folder.name) / "keys"
        self.keys.write_text("alice: wonder\nbob: builder\n", encoding="utf-8")
        self.keys.chmod(0o600)
        self.came = []

    def serve(self, connection, asked):
        self.came.append(asked)
        connection.sendall(WHOLE)

    def pages_are_refused(self, started, *key):
        own = f"127.0.0.1:{started.address[1]}"
        foreign = ("Origin: https://evil.example", "Content-Type: text/plain", *key)
        self.assertEqual(started.status(*foreign, host=own), 403)
        self.assertEqual(unfinished(started.address, *foreign), 403)
        self.assertEqual(started.status("User-Agent: Mozilla/5.0", *key, host="evil.example"), 403)
        self.assertEqual(started.status("Sec-Fetch-Site: cross-site", *key, host=own), 403)
        self.assertEqual(started.status(*foreign, method="GET", path="/health", host=own, body=b""), 200)
        for headers in [(f"Origin: http://{own}",), ("Origin: https://chat.example", "Sec-Fetch-Site: cross-site"), ()]:
            self.assertEqual(started.status(*headers, *key, host=own), 200, headers)
        self.assertEqual(started.status("User-Agent: curl/8.5.0", *key, host="any.name"), 200)

    def test_the_gateway_asks_for_its_keys_and_passes_none_on(self):
        os.environ["ACCESS_TEST_KEY"] = "sk-of-the-server"
        with KeepingUpstream(self.serve) as upstream, Started("gateway", "--upstream", upstream.url, "--no-observe", "--api-key-file", str(self.keys),
                                                              "--api-key-env", "ACCESS_TEST_KEY", "--allow-origin", "https://chat.example") as front:
            for headers in [(), ("Authorization: Bearer guess",), ("X-Api-Key: wonder",)]:
                self.assertEqual(front.status(*headers), 401)
                self.assertEqual(unfinished(front.address, *headers), 401)
                self.assertEqual(front.status(*headers, method="GET", path="/metrics"), 401)
            self.assertEqual(front.status(method="GET", path="/health", body=b""), 200)
            self.assertEqual(front.status(path="/health"), 401, "no body is read without a key")
            self.assertEqual(self.came, [])
            self.assertEqual(front.status("Authorization: Bearer wonder", "X-Api-Key: wonder"), 200)
            self.assertIn(b"authorization: Bearer sk-of-the-server\r\n", self.came[0])
            self.assertNotIn(b"wonder", self.came[0])
            self.pages_are_refused(front, "Authorization: Bearer wonder")
            self.assertEqual(front.errors(), "")
            # Another file of keys, without a new start; one that is wrong changes nothing.
            self.keys.write_text("carol: new\n", encoding="utf-8")
            self.keys.chmod(0o640)
            front.process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + 20
            while front.status("Authorization: Bearer new") != 200 and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertEqual(front.status("Authorization: Bearer new"), 200)
            self.assertEqual(front.status("Authorization: Bearer wonder"), 401)
            self.keys.write_text("carol:\n", encoding="utf-8")
            front.process.send_signal(signal.SIGHUP)
            while "keys:1" not in front.errors() and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertIn("keys:1", front.errors())
            self.assertIn("chmod 600", front.errors())
            self.assertEqual(front.status("Authorization: Bearer new"), 200)

    def test_without_a_file_everybody_may_ask_and_keeps_the_key(self):
        with KeepingUpstream(self.serve) as upstream, Started("gateway", "--upstream", upstream.url, "--no-observe", "--allow-origin", "https://chat.example") as front:
            self.assertEqual(front.status("Authorization: Bearer theirs"), 200)
            self.assertIn(b"authorization: Bearer theirs\r\n", self.came[0])
            self.pages_are_refused(front)

    def test_check_says_who_may_ask(self):
        def check(*words):
            done = subprocess.run([os.environ["FULLSTOP"], "gateway", "--upstream", "http://127.0.0.1:9", "--check", *words], capture_output=True, text=True, timeout=60, check=False)
            return done.returncode, done.stdout + done.stderr

        self.assertIn("Who may ask: everybody", check()[1])
        code, said = check("--api-key-file", str(self.keys), "--allow-origin", "https://chat.example")
        self.assertEqual(code, 0)
        self.assertIn("(alice, bob)", said)
        self.assertIn("https://chat.example", said)
        self.assertNotIn("wonder", said)
        for words in [("--api-key-file", self.folder.name), ("--api-key-file", "/dev/zero"), ("--allow-origin", "null")]:
            code, said = check(*words)
            self.assertEqual((code, words[0] in said), (2, True), said)

    def test_serve_refuses_by_the_head_too(self):
        self.keys.chmod(0o644)
        with Started("serve", "--api-key-file", str(self.keys), "--allow-origin", "https://chat.example", "--kv-tokens", "1024", "--max-sequences", "1", "--threads", "1") as server:
            self.assertIn("chmod 600", server.errors())
            self.assertEqual(unfinished(server.address), 401)
            self.assertEqual(unfinished(server.address, "Authorization: Bearer guess"), 401)
            self.pages_are_refused(server, "Authorization: Bearer wonder")


if __name__ == "__main__":
    unittest.main(verbosity=2)
