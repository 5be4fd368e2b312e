#!/usr/bin/env python3
"""An answer ends badly in every way a server can end it: how many of those ends reach the client looking like an answer that was finished?

  bench/truth_matrix.py [--only fullstop,nginx,haproxy,caddy,litellm] [--deps DIR] [--verbose]

The same scripted ends, in the dialects of OpenAI chat, llama-server and Ollama, streamed and not, once without anything in between and once
through each relay, whose limit on silence is set to 2 s where it has one. Two clients judge the bytes that arrive. The common one does what
SDKs do: status 200, a body whole by its framing (or, without any, closed by FIN), every event or the body readable, no error object. The
strict one also wants the reason of the end and the dialect's terminator. Whole answers run along: a relay that breaks them has no merit.

nginx, haproxy and caddy are Debian's; LiteLLM is installed from the Python index into DIR (.deps/gateways) and speaks only the first dialect."""

import argparse
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # nothing but sources in bench/
import debian_programs
import gateway_peers
from gateway import free_port, program

ROOT = pathlib.Path(__file__).resolve().parent.parent
SILENCE_S, PATIENCE_S = 2, 6
ENDS = ["FIN", "RST", "clean end", "close-delimited", "error object", "stall", "half event", "garbage", "500 before", "500 after"]
DIALECTS = {"chat": "/v1/chat/completions", "llama-server": "/completion", "ollama": "/api/chat"}
WORDS = ["Mercury", " is", " the", " nearest", " planet", " of", " eight"]
LITELLM = "litellm[proxy]==1.108.7"


# --- The server --------------------------------------------------------------------------------------------------------------


def piece(dialect, text, last=False):
    if dialect == "chat":
        return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                "choices": [{"index": 0, "delta": {} if last else {"content": text}, "finish_reason": "stop" if last else None}]}
    if dialect == "llama-server":
        return {"content": "" if last else text, "stop": last} | ({"stop_type": "eos", "tokens_predicted": 7} if last else {})
    return {"model": "m", "message": {"role": "assistant", "content": "" if last else text}, "done": last} | ({"done_reason": "stop", "eval_count": 7} if last else {})


def body(dialect):
    text = "".join(WORDS)
    if dialect == "chat":
        return {"id": "c", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10}}
    return piece(dialect, text) | piece(dialect, "", True) | ({"content": text} if dialect == "llama-server" else {"message": {"role": "assistant", "content": text}})


def error(dialect):
    return {"error": "out of memory"} if dialect == "ollama" else {"error": {"message": "out of memory", "type": "server_error", "code": 500}}


def framed(dialect, what):
    text = json.dumps(what)
    return (text + "\n" if dialect == "ollama" else f"data: {text}\n\n").encode()


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def answer(connection, dialect, stream, end):
    if end == "500 before":
        text = json.dumps(error(dialect)).encode()
        return connection.sendall(b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
    kind = "application/json" if not stream else "application/x-ndjson" if dialect == "ollama" else "text/event-stream"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{'Connection: close' if end == 'close-delimited' else 'Transfer-Encoding: chunked'}\r\n\r\n".encode()
    whole = json.dumps(body(dialect)).encode()
    parts = [framed(dialect, piece(dialect, word)) for word in WORDS] if stream else [whole[: len(whole) // 2]]
    done = [framed(dialect, piece(dialect, "", True))] + ([b"data: [DONE]\n\n"] if dialect == "chat" else []) if stream else [whole[len(whole) // 2:]]
    write = connection.sendall if end == "close-delimited" else lambda data: connection.sendall(chunk(data))
    connection.sendall(head)
    if not stream and end in ("error object", "500 after"):
        parts = [json.dumps(error(dialect)).encode()]
    for part in parts:
        write(part)
        time.sleep(0.005)
    if end == "whole":
        connection.sendall(b"".join(map(chunk, done)) + b"0\r\n\r\n")
    elif end == "RST":
        time.sleep(0.05)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif end == "stall":
        time.sleep(PATIENCE_S + 1)
    elif end == "garbage":
        connection.sendall(b"\xff\x00 segmentation fault\r\n" * 3)
    elif end in ("clean end", "error object", "half event", "500 after"):
        if stream and end in ("error object", "500 after"):
            write(framed(dialect, error(dialect)))
        if stream and end == "half event":
            write(framed(dialect, piece(dialect, " more"))[:25])
        if end == "500 after":  # as servers do that always close their list of events
            write(b"data: [DONE]\n\n" if stream and dialect == "chat" else b"\n")
        connection.sendall(b"0\r\n\r\n")


class Server:
    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    @staticmethod
    def _serve(connection):
        try:
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                data = b""
                while b"\r\n\r\n" not in data:
                    data += connection.recv(65536) or b"\r\n\r\n"
                head, _, rest = data.partition(b"\r\n\r\n")
                if head.startswith(b"GET"):
                    return connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\nConnection: close\r\n\r\n{\"data\":[]}")
                length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
                while len(rest) < length:
                    rest += connection.recv(65536)
                question, path = json.loads(rest), head.split()[1].decode()
                dialect = next(name for name, end in DIALECTS.items() if path == end)
                asked = question.get("prompt") or question["messages"][-1]["content"]
                time.sleep(0.003)  # a proxy in Go may lose a response that begins before it has sent the whole request
                answer(connection, dialect, question.get("stream", False), asked)
        except (OSError, ValueError, StopIteration):
            pass


# --- The clients -------------------------------------------------------------------------------------------------------------


def ask(port, dialect, stream, end):
    """The raw response and how it ended: fin, rst, timeout."""
    question = {"model": "m", "stream": stream} | ({"prompt": end} if dialect == "llama-server" else {"messages": [{"role": "user", "content": end}]})
    text = json.dumps(question).encode()
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        client.sendall(f"POST {DIALECTS[dialect]} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer x\r\n"
                       f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode() + text)
        try:
            while more := client.recv(65536):
                got += more
        except ConnectionResetError:
            return got, "rst"
        except TimeoutError:
            return got, "timeout"
    return got, "fin"


def unframed(raw, end):
    """Status, body, and whether the framing says that it is all."""
    head, found, rest = raw.partition(b"\r\n\r\n")
    if not found:
        return 0, b"", False
    status, lines = int(head.split()[1]), head.lower().split(b"\r\n")
    if b"transfer-encoding: chunked" in lines:
        out = b""
        while True:
            size, found, rest = rest.partition(b"\r\n")
            try:
                count = int(size, 16) if found else None
            except ValueError:
                count = None
            if count is None:
                return status, out, False
            if count == 0:
                return status, out, True
            out += rest[:count]
            if len(rest) < count + 2:
                return status, out, False
            rest = rest[count + 2:]
    lengths = [int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")]
    return status, rest, len(rest) == lengths[0] if lengths else end == "fin"


def events_of(dialect, data):
    """The JSON texts of a stream, and whether it stops between two of them."""
    pieces = data.decode(errors="replace").split("\n" if dialect == "ollama" else "\n\n")
    texts = [text.removeprefix("data: ") for text in pieces[:-1] if text and not text.startswith(":")]
    return texts, pieces[-1] == ""


def seen(raw, end, dialect, stream):
    """What the common and the strict client take it for: two booleans, "a finished answer"."""
    status, data, whole = unframed(raw, end)
    if status != 200 or not whole:
        return False, False
    texts, between = events_of(dialect, data) if stream else ([data.decode(errors="replace")], True)
    try:
        read = [json.loads(text) for text in texts if text != "[DONE]"]
    except ValueError:
        return False, False
    if not between or not read or any("error" in one for one in read):
        return False, False
    if dialect == "chat":
        reason = any(choice.get("finish_reason") for one in read for choice in one.get("choices", []))
        strict = reason and (not stream or texts[-1] == "[DONE]")
    else:
        strict = bool(read[-1].get("stop" if dialect == "llama-server" else "done"))
    return True, strict


# --- The relays --------------------------------------------------------------------------------------------------------------


class LiteLLM:
    name, dialects = "LiteLLM", ("chat",)

    def __init__(self, deps):
        folder = deps / "litellm"
        if not (folder / "installed").exists() or (folder / "installed").read_text() != LITELLM:
            print(f"truth_matrix: installing {LITELLM} (about a minute)", file=sys.stderr, flush=True)
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            done = subprocess.run([folder / "bin" / "pip", "install", "-q", LITELLM], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise debian_programs.Missing(f"{LITELLM} could not be installed: {done.stderr[-300:]}")
            (folder / "installed").write_text(LITELLM)
        self._program = folder / "bin" / "litellm"

    def command(self, folder, port, upstream):
        config = {"model_list": [{"model_name": "m", "litellm_params": {"model": "openai/m", "api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": "x",
                                                                        "timeout": SILENCE_S, "stream_timeout": SILENCE_S, "max_retries": 0}}],
                  "litellm_settings": {"num_retries": 0, "request_timeout": SILENCE_S, "telemetry": False}, "router_settings": {"num_retries": 0}}
        path = gateway_peers.write(folder / "config.yaml", json.dumps(config))  # JSON is YAML
        return [str(self._program), "--config", path, "--port", str(port), "--host", "127.0.0.1", "--telemetry", "False"]

    def environment(self):
        return {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_DOCS": "True", "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}


def relays(only, deps):
    caddy = gateway_peers.CADDY.replace("reverse_proxy 127.0.0.1:{upstream}", f"reverse_proxy 127.0.0.1:{{upstream}} {{{{\n transport http {{{{\n read_timeout {SILENCE_S}s\n }}}}\n }}}}")
    haproxy = gateway_peers.HAPROXY.replace("timeout server 1800s", f"timeout server {SILENCE_S}s")
    makers = {"fullstop": lambda: gateway_peers.Fullstop(program("fullstop"), "--idle", f"{SILENCE_S}s"),
              "nginx": lambda: gateway_peers.Nginx(deps, gateway_peers.NGINX_TUNED.replace("1800s", f"{SILENCE_S}s")),
              "haproxy": lambda: gateway_peers.Haproxy(deps, haproxy), "caddy": lambda: gateway_peers.Caddy(deps, caddy), "litellm": lambda: LiteLLM(deps)}
    for name, make in makers.items():
        if not only or name in only:
            try:
                yield make()
            except debian_programs.Missing as missing:
                print(f"truth_matrix: {missing}: no row for it", file=sys.stderr, flush=True)


def matrix(port, dialects, verbose):
    """(dialect, stream, end) -> (common, strict, how it ended)."""
    out = {}

    def one(key):
        raw, end = ask(port, *key)
        out[key] = (*seen(raw, end, key[0], key[1]), end)
        if verbose:
            print(f"  {key}: {out[key]} {raw[-160:]!r}", file=sys.stderr)

    for dialect in dialects:
        for stream in (True, False):
            threads = [threading.Thread(target=one, args=((dialect, stream, end),)) for end in [*ENDS, "whole"]]
            for thread in threads:
                thread.start()
                time.sleep(0.02)
            for thread in threads:
                thread.join()
    return out


def row(name, found):
    bad = {key: value for key, value in found.items() if key[2] != "whole"}
    common, strict = [key for key, value in bad.items() if value[0]], [key for key, value in bad.items() if value[1]]
    waits = sum(value[2] == "timeout" for value in bad.values())
    whole = sum(value[1] for key, value in found.items() if key[2] == "whole")
    which = ", ".join(f"{end} ({len(keys)})" for end in ENDS if (keys := [key for key in common if key[2] == end]))
    print(f"| {name} | {len(common)} of {len(bad)} | {len(strict)} | {waits} | {whole} of {len(found) - len(bad)} | {which} |", flush=True)
    return len(common)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--deps", default="")
    parser.add_argument("--verbose", action="store_true", help="every end and its last bytes, on standard error")
    options = parser.parse_args()
    deps = debian_programs.work_folder(ROOT, options.deps)
    server, ours = Server(), 0
    print("| relay | bad ends that look finished to a common client | to a strict one | client still waiting after "
          f"{PATIENCE_S} s | whole answers whole | which |\n|---|---|---|---|---|---|")
    row("none", matrix(server.port, DIALECTS, options.verbose))
    for peer in relays([word for word in options.only.split(",") if word], deps):
        running = gateway_peers.Running(peer, deps / "truth" / peer.name.replace(" ", "-"), free_port(), server.port, (), dict(os.environ))
        try:
            running.wait_until_up()
            count = row(peer.name, matrix(running.port, getattr(peer, "dialects", DIALECTS), options.verbose))
            ours += count if peer.name == "fullstop" else 0
        finally:
            running.stop()
    return 1 if ours else 0


if __name__ == "__main__":
    sys.exit(main())
