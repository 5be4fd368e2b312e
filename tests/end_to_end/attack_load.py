#!/usr/bin/env python3
"""What an attacker sends, for attack_test.py: `attack_load.py serve|gateway PORT SECONDS MODEL [PID]` runs through the list until the
time is over and says each attack's name. No answer is judged here. The load is bounded: loopback, a few connections at a time, each
closed within seconds."""

import contextlib
import itertools
import json
import os
import signal
import socket
import struct
import sys
import threading
import time

CHAT = "/v1/chat/completions"
ROUND = "that was all"
MIB = 1 << 20
USER = [{"role": "user", "content": "x"}]


def connect(port, patience=2.0):
    connection = socket.create_connection(("127.0.0.1", port), timeout=patience)
    connection.settimeout(patience)
    return connection


def post(body, path=CHAT, headers="", version="1.1"):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"POST {path} HTTP/{version}\r\nHost: x\r\n{headers}Content-Length: {len(data)}\r\n\r\n".encode() + data


def exchange(port, data, patience=2.0):
    """Sends, reads for a while and leaves."""
    with contextlib.suppress(OSError), connect(port, patience) as connection:
        connection.sendall(data)
        until = time.monotonic() + patience
        while time.monotonic() < until and connection.recv(65536):
            pass


def at_once(port, requests, patience=1.0):
    threads = [threading.Thread(target=exchange, args=(port, data, patience), daemon=True) for data in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def held(port, pieces, seconds):
    """Connections that begin something, hold it for a while and go."""
    connections = []
    for piece in pieces:
        with contextlib.suppress(OSError):
            connections.append(connect(port))
            connections[-1].sendall(piece)
    time.sleep(seconds)
    for connection in connections:
        with contextlib.suppress(OSError):
            reset(connection)


def chat(**more):
    return {"messages": USER, "stream": True, "max_tokens": 3, **more}


def raw_chat(model, members):
    return f'{{"model":"{model}","messages":[{{"role":"user","content":"x"}}],"stream":true,{members}}}'.encode()


# Both sides ---------------------------------------------------------------------------------------------------------------

EVIL_NUMBERS = ["9223372036854775807", "9223372036854775800", "-9223372036854775808", "9007199254740992", "9007199254740993", "18446744073709551616",
                "1e30", "1e308", "1e400", "-1", "100.5", "0", "NaN", '"5000"', "null", "10000000"]


def evil_numbers(port, model):
    names = ("max_tokens", "max_completion_tokens", "n", "seed", "top_logprobs", "temperature")
    for name in names:
        at_once(port, [post(raw_chat(model, f'"{name}":{number}')) for number in EVIL_NUMBERS], 0.3)


def limits_told_twice(port, model):
    bodies = ['"max_tokens":1,"max_tokens":5000', '"max_tokens":1,"max_completion_tokens":5000', r'"max\u005ftokens":5000', '"max_tokens":5000.5',
              '"max_tokens":1,"options":{"num_predict":5000}', '"max_tokens":5000/**/', '"max_tokens":5000,"x":"\\ud800"', '"x":NaN,"max_tokens":5000']
    at_once(port, [post(raw_chat(model, body)) for body in bodies], 0.3)


def strange_bodies(port, model):
    deep = b"[" * 100_000
    bodies = [deep, b'{"messages":' + deep + b"]" * 100_000 + b"}", b"", b"\0" * 100, b"\xff\xfe", b'{"messages":[{"role":"user","content":"\\ud83d"}]}',
              b'{"messages":[{"role":"user","content":"\xff"}]}', b'{"messages":[],"fullstop":{"deadline_ms":5e-324}}',
              b'{"messages":[],"fullstop":{"priority":"' + "€".encode() * 30 + b'"}}', b'{"messages":[],"user":"' + b"u" * MIB + b'"}']
    at_once(port, [post(body) for body in bodies] + [post(raw_chat(model, '"stop":' + json.dumps(["s" * 256] * 16)))])


def big_bodies(port, model):
    del model
    small = [b'{"messages":[' + b"0," * 4_100_000 + b"0]}", b'{"messages":[' + b"{}," * 2_700_000 + b"{}]}",
             b'{"messages":[{"role":"user","content":"' + b"a" * 8_000_000 + b'"}]}',
             b'{"messages":[{"role":"user","content":"x"}],"logit_bias":{' + b'"1":1,' * 1_300_000 + b'"2":1}}']
    for body in small:
        exchange(port, post(body), 0.7)


def unfinished_bodies(port, model):
    del model
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: {8 * MIB}\r\n\r\n".encode()
    held(port, itertools.repeat(head + b"a" * (8 * MIB - 1), 33), 1.5)


def slow_senders(port, model):
    del model
    held(port, [b"POST / HTTP/1.1\r\nX: " + b"a" * 1000] * 50 + [b"G"] * 50 + [b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"] * 20, 1.0)


def strange_heads(port, model):
    del model
    chunked = "POST {} HTTP/1.{}\r\nHost: x\r\nTransfer-Encoding: chunked\r\n{}\r\n"
    at_once(port, [
        (chunked.format(CHAT, 1, "Content-Length: 5\r\n") + "0\r\n\r\nGET / HTTP/1.1\r\n\r\n").encode(),
        (chunked.format(CHAT, 0, "") + "0\r\n\r\n").encode(),
        (chunked.format(CHAT, 1, "") + "fffffffffffffffff\r\n").encode(),
        (chunked.format(CHAT, 1, "") + "1\r\n{\r\n" * 20000).encode(),
        b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\nX-Request-Id: \x1b[31m\r\n\r\n",
        b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 200,
        post({"messages": USER, "stream": True, "max_tokens": 2}, version="1.0"),
        b"GET http://x/metrics HTTP/1.1\r\nHost: evil\r\nOrigin: http://evil\r\n\r\n",
        post({"messages": USER, "max_tokens": 1}, headers="Content-Type: text/plain\r\nOrigin: http://evil\r\n")], 0.3)


def strange_paths(port, model):
    paths = ["/v1/chat/completion%73", "/v1/chat/%63ompletions", "/v1/chat/completions/", "/v1/chat/completions;x", "/v1/chat/completions#",
             "//v1//chat//completions", "/v1/./chat/completions", "/x/../v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/%00", "*", "/%",
             "http://x/v1/chat/completions"]
    at_once(port, [post({"model": model, "messages": USER, "input": "x", "stream": True, "max_tokens": 5000}, path) for path in paths], 0.3)


def who_does_not_read(port, model):
    for _ in range(3):
        with contextlib.suppress(OSError):
            connection = connect(port)
            connection.sendall(post({"model": model, **chat(max_tokens=50)}))
            time.sleep(0.2)
            reset(connection)


# serve ------------------------------------------------------------------------------------------------------------------------

def schema_of(pattern):
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "string", "pattern": pattern}}}


def patterns(port, model):
    del model
    for pattern in ("(a*|b*)" * 20, "(a*|b*)" * 64, "(a|b*)" * 64, "a?" * 128, "(a{0,50}){0,50}", "((a?b?){0,9}c?){0,99}"):
        exchange(port, post(chat(temperature=1.5, response_format=schema_of(f"^{pattern}$"))), 0.3)


def schemas(port, model):
    del model
    wide = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(4000)}}
    deep = {"type": "string"}
    for _ in range(10):
        deep = {"anyOf": [deep, {"type": "array", "items": deep}]}
    self_like = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}}
    for schema in (wide, deep, self_like):
        exchange(port, post(chat(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}})), 0.3)


# gateway ------------------------------------------------------------------------------------------------------------------------

class Liar:
    """A server that looks like llama-server, or like nothing (tells=False), and answers as the request's `user` says."""

    TEXT = "The quick brown fox jumps over the lazy dog and runs. "
    HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

    def __init__(self, tells=True):
        self._tells, self.asked = tells, []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self._listener.accept()[0],), daemon=True).start()

    def _serve(self, connection):
        with connection, contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            connection.settimeout(20)
            while self._answer(connection):
                pass

    @staticmethod
    def _read(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return None, b""
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        length = sum(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        parts = [body]
        while length > sum(map(len, parts)):
            parts.append(connection.recv(MIB))
            if not parts[-1]:
                return None, b""
        return head.split(b" ")[1].decode("latin1"), b"".join(parts)

    @staticmethod
    def _json(connection, value):
        body = json.dumps(value).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        return True

    @staticmethod
    def chunk(data):
        return b"%x\r\n" % len(data) + data + b"\r\n"

    def event(self, data):
        return self.chunk(b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n")

    def piece(self, text, reason=None):
        return self.event({"model": "liar", "choices": [{"index": 0, "delta": {"content": text} if text else {}, "finish_reason": reason}]})

    def end(self):
        return self.piece("", "stop") + self.event(b"[DONE]") + b"0\r\n\r\n"

    def _answer(self, connection):
        path, body = self._read(connection)
        if path is None:
            return False
        if path == "/v1/models":
            return self._json(connection, {"data": [{"id": "liar", "owned_by": "llamacpp"}]})
        if path == "/props" and self._tells:
            return self._json(connection, {"default_generation_settings": {"n_ctx": 4096, "params": {"n_predict": -1}}, "total_slots": 4,
                                           "model_alias": "liar", "build_info": "b1-x"})
        if path == "/slots" and self._tells:
            return self._json(connection, [{"id": i, "n_ctx": 4096, "is_processing": False} for i in range(4)])
        self.asked = self.asked[-5000:] + ([body] if len(body) < 10_000 else [])
        asked = json.loads(body)
        if path == "/apply-template":
            return self._json(connection, {"prompt": "\n".join(message["content"] for message in asked["messages"])})
        return self._lie(connection, asked, str(asked.get("user")))

    def _lie(self, connection, asked, how):
        last = asked["messages"][-1] if asked.get("messages") else {}
        if isinstance(last, dict) and last.get("role") == "assistant":  # the rest of what another one began
            connection.sendall(self.HEAD + self._repeats(str(last["content"]), how) + self.end())
            return True
        if how.startswith("dies"):
            connection.sendall(self.HEAD + b"".join(self.piece(word + " ") for word in self.TEXT.split(" ")))
            reset(connection)
        elif how == "within":
            connection.sendall(self.HEAD.replace(b"1.1", b"1.0", 1).replace(b"Transfer-Encoding: chunked\r\n", b"") + b'data: {"choices":[{"ind')
        elif how == "head":
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: a\rb\0c\r\n" + b"Y: " + b"y" * 100_000 + b"\r\n\r\n")
        elif how == "none":
            connection.sendall(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello")
        elif how == "zipped":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00")
        elif how == "huge":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + b"[" + b"0," * 8_000_000)
        elif how == "comments":
            connection.sendall(self.HEAD + self.chunk(b": x\n\n") * 20_000 + self.end())
        elif how == "slow":
            connection.sendall(self.HEAD + self.piece("x"))
            time.sleep(2)
            connection.sendall(self.end())
            return True
        else:
            connection.sendall(self.HEAD + self.piece("whole") + self.end())
            return True
        return False

    def _repeats(self, got, how):
        said = json.dumps(got + "rest").encode()
        event = b'{"choices":[{"index":0,"delta":{"content":' + said + b'},"finish_reason":null}]%s}'
        endings = {"dies nan": b',"t":NaN', "dies twice": b',"choices":5', "dies deep": b',"x":' + b"[" * 40 + b"]" * 40}
        if how == "dies half":
            return self.event(event.replace(said, said[:-1] + b'\\ud83d"') % b"")
        if how == "dies stray":
            return self.event(event.replace(said, said[:-1] + b'\xff"') % b"")
        return self.event(event % endings.get(how, b""))


def overflowing_sums(port, model):
    del model
    at_once(port, [post({"model": "silent", **chat(max_tokens=1 << 53, n=128, user="slow")})] * 8, 1.0)


def broken_continuations(port, model):
    del model
    lies = ["dies", "dies nan", "dies twice", "dies deep", "dies half", "dies stray"]
    at_once(port, [post({"model": "liar", **chat(user=lie, max_tokens=100)}) for lie in lies], 1.5)
    at_once(port, [post(raw_chat("liar", f'"user":"dies","max_tokens":{number}')) for number in ("100.5", "1e30", "-1", '200,"n_predict":100.5')], 1.5)


def lying_servers(port, model):
    del model
    for lie in ("within", "head", "none", "zipped", "huge", "comments"):
        at_once(port, [post({"model": "silent", **chat(user=lie, stream=stream)}) for stream in (True, False)], 1.0)
    at_once(port, [post({"model": "silent", **chat(user="within")}, path) for path in ("/v1/messages", "/v1/responses", "/v1/embeddings")], 1.0)


def full_queue(port, model):
    del model
    at_once(port, [post({"model": "liar", **chat(user="slow", max_tokens=10_000_000)})] * 12, 1.0)


def bodies_under_way(port, model):
    del model
    body = post({"model": "silent", "messages": [{"role": "user", "content": "a" * (8 * MIB - 200)}], "user": "slow"})
    held(port, [body] * 6, 1.0)


def hang_ups(pid):
    def attack(port, model):
        del port, model
        for _ in range(5):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGHUP)
            time.sleep(0.1)
    attack.__name__ = "hang_ups"
    return attack


BOTH = [evil_numbers, limits_told_twice, strange_bodies, big_bodies, unfinished_bodies, slow_senders, strange_heads, strange_paths, who_does_not_read]


def main():
    side, port, seconds, model, *pid = sys.argv[1:]
    until = time.monotonic() + float(seconds)
    serving = side == "serve"
    attacks = BOTH + ([patterns, schemas] if serving else
                      [overflowing_sums, broken_continuations, lying_servers, full_queue, bodies_under_way, hang_ups(int(pid[0]))])
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        for attack in attacks:
            if time.monotonic() > until:
                return
            print(attack.__name__, flush=True)
            attack(int(port), model if serving else "liar")
            time.sleep(0.05)
        print(ROUND, flush=True)


if __name__ == "__main__":
    os.nice(5)
    main()
