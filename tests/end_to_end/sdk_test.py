#!/usr/bin/env python3
"""The official OpenAI SDKs for Python and Node behind `fullstop gateway`: an answer that was cut raises in both, streamed or not, whatever
the cut; a whole one is the same as without the gateway. Beside it, what the same SDKs make of the same server without the gateway.
FULLSTOP names the program, SDKS the folder into which `./setup --tests` installed both; without them this test fails."""

import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
from gateway_test import DONE, HEAD, KeepingUpstream, chunk, gateway, read_request, reset

SDKS = pathlib.Path(os.environ["SDKS"])
HERE = pathlib.Path(__file__).resolve().parent
CUTS = ["rst", "fin", "clean end", "close-delimited", "idle", "half event", "error object", "nothing", "status 500"]
TEXT = "The quick brown fox – “jumps” over 13 dogs.\n"


def event(content, finish=None):
    delta = {"content": content} if content is not None else {}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def streamed(connection, case):
    pieces = b"".join(chunk_of(event(word + " ")) for word in TEXT.split(" "))
    if case == "whole":
        connection.sendall(HEAD + pieces + chunk_of(event(None, "stop")) + DONE + b"0\r\n\r\n")
    elif case == "whole at its limit":
        connection.sendall(HEAD + pieces + chunk_of(event(None, "length")) + DONE + b"0\r\n\r\n")
    elif case == "close-delimited":
        connection.sendall(HEAD.replace(b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n") + b"".join(plain(event(word)) for word in TEXT.split(" ")))
    else:
        connection.sendall(HEAD + pieces)
        cut(connection, case)


def whole_body(case):
    reason = "length" if case == "whole at its limit" else "stop"
    return json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
                       "choices": [{"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": reason}],
                       "usage": {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12}}).encode()


def unstreamed(connection, case):
    body, head = whole_body(case), b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    half = body[: len(body) // 2]
    if case.startswith("whole"):
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    elif case == "close-delimited":
        connection.sendall(head + b"Connection: close\r\n\r\n" + half)
    else:
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + b"%x\r\n" % len(half) + half + b"\r\n")
        cut(connection, case)


def cut(connection, case):
    time.sleep(0.05)  # what came before has left
    if case == "rst":
        reset(connection)
    elif case == "clean end":
        connection.sendall(b"0\r\n\r\n")
    elif case == "idle":
        time.sleep(1.5)
    elif case == "half event":
        connection.sendall(chunk('data: {"id":"chatcmpl-1","obj'))
    elif case == "error object":
        connection.sendall(chunk('data: {"error":{"message":"out of memory","type":"server_error","code":500}}\n\n') + DONE + b"0\r\n\r\n")


def serve(connection, asked):
    while asked:
        question = json.loads(asked.partition(b"\r\n\r\n")[2])
        case = question["model"]
        if case == "nothing":
            return
        if case == "status 500":
            connection.sendall(b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\r\n" + b'{"error":{"message":"oops"}}'[:27])
            return
        (streamed if question.get("stream") else unstreamed)(connection, case)
        if not case.startswith("whole"):
            return
        asked = read_request(connection)


def plain(what):
    return f"data: {json.dumps(what)}\n\n".encode()


def chunk_of(what):
    return chunk(plain(what).decode())


def results(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        raise AssertionError(f"{command[:2]} failed (is ./setup --tests done?): {done.stderr[-1500:]}")
    return {(line["case"], line["stream"]): line for line in map(json.loads, done.stdout.splitlines())}


def python_sdk(url, *cases):
    return results([SDKS / "bin" / "python", HERE / "sdk_client.py", url, *cases])


def node_sdk(url, *cases):
    return results([SDKS / "bin" / "node", HERE / "sdk_client.mjs", url, *cases], {"SDK_MODULES": str(SDKS / "node")})


class Sdk(unittest.TestCase):
    def check(self, ask, name):
        wholes = ["whole", "whole at its limit"]
        with KeepingUpstream(serve) as server, gateway(server.url, "--idle", "800ms") as front:
            direct = ask(server.url, *wholes, *[case for case in CUTS if case != "idle"])
            through = ask(front.url, *wholes, *CUTS)
        for case in wholes:
            for stream in (True, False):
                self.assertIsNone(through[case, stream]["error"])
                self.assertEqual(through[case, stream], direct[case, stream])
                self.assertEqual(through[case, stream]["text"].strip(), TEXT.strip())
        looked_whole = [key for key, line in direct.items() if key[0] in CUTS and line["error"] is None]
        print(f"\n  {name}: of {2 * len(CUTS)} cut answers, taken for whole without the gateway {looked_whole}, with it "
              f"{[key for key, line in through.items() if key[0] in CUTS and line['error'] is None]}", flush=True)
        for case in CUTS:
            for stream in (True, False):
                line = through[case, stream]
                self.assertIsNotNone(line["error"], f"{name} took a cut answer for whole: {line}")
        # (Of half an event both SDKs say that it is no JSON before they come to the error object.)
        for case, cause in {"rst": "reset", "fin": "closed its connection", "clean end": "before the answer's own end", "idle": "limit 0.8 s",
                            "close-delimited": "closed its connection"}.items():
            self.assertIn("APIError", through[case, True]["error"], "streamed: the error object is what raises")
            self.assertIn(cause, through[case, True]["error"], case)
        self.assertGreater(len(looked_whole), 0, "without the gateway nothing is hidden: this test would show nothing")

    def test_python(self):
        self.check(python_sdk, "Python SDK")

    def test_node(self):
        self.check(node_sdk, "Node SDK")


if __name__ == "__main__":
    unittest.main(verbosity=2)
