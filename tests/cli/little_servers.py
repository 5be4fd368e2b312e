"""Small real servers on loopback, each with one bad habit. A server is a context manager; `url` is its root."""

import contextlib
import socket
import threading


class LittleServer:
    """Accepts connections and gives each to `behave(socket)` on its own thread until it is left."""

    def __init__(self, behave):
        self._behave = behave
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.accepted = 0
        self._open = []
        self._closing = False

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._closing = True
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.close()

    def _accept(self):
        while not self._closing:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with contextlib.suppress(OSError):
            self._behave(connection)
            connection.close()


def read_request(connection):
    """One request with Content-Length: (method, path, body). Empty method when the client left."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return "", "", b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    length = 0
    for line in lines[1:]:
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            length = int(value)
    while len(body) < length:
        body += connection.recv(65536)
    method, path, _ = lines[0].split(" ", 2)
    return method, path, body


def response(status, content_type, body, reason="X"):
    if isinstance(body, str):
        body = body.encode()
    return (f"HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
            f"Connection: close\r\n\r\n").encode() + body


def always(raw):
    """Answers every request with the same bytes."""
    def behave(connection):
        if read_request(connection)[0]:
            connection.sendall(raw)
    return behave


MODELS = response(200, "application/json", '{"object":"list","data":[{"id":"tiny","object":"model"}]}')


def with_models(chat):
    """Lists one model, `tiny`; everything posted goes to `chat(connection)`; other paths are 404."""
    def behave(connection):
        method, path, _ = read_request(connection)
        if method == "POST":
            chat(connection)
        elif path.endswith("/v1/models"):
            connection.sendall(MODELS)
        elif method:
            connection.sendall(response(404, "application/json", '{"error":{"message":"not here"}}'))
    return behave


# What drives a terminal, reorders or hides text, is no UTF-8, or is simply long: as bytes for heads, and for JSON strings.
HOSTILE = (b"\x1b[2J\x1b]0;owned\x07 \x08\x7f\t \xc2\x9b31m \xd8\x9c\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8b\xef\xbb\xbf \xff\xfe\xed\xa0\x80 \xe6\xbc =1+1")
HOSTILE_JSON = (HOSTILE.replace(b"\x1b", b"\\u001b").replace(b"\x07", b"\\u0007").replace(b"\x08", b"\\u0008").replace(b"\t", b"\\t")
                + b"\\r\\nfullstop: forged \\u0000\\ud800")
HOSTILE_NAME = HOSTILE_JSON.replace(b"\xff\xfe\xed\xa0\x80 \xe6\xbc", b"").replace(b"\\ud800", b"")  # a model list that can be read


def hostile(where, long=0):
    """Every string it says is hostile, and `long` bytes longer; `where` it fails: "location", "key", "loading", "refused" or "nowhere"."""
    words, name = HOSTILE_JSON + b"x" * long, HOSTILE_NAME + b"x" * long
    error = b'{"error":{"message":"' + words + b'","type":"' + words + b'","code":"' + words + b'"}}'
    head = HOSTILE.replace(b"\r", b"")

    def events():
        delta = b'{"id":"' + words + b'","model":"' + words + b'","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":%s}]}'
        yield b": " + head + b"\n\n"
        for reason in (b"null", b"null", b'"' + words + b'"'):
            yield b"data: " + delta % (words, reason) + b"\n\n"
        yield head + b": " + head + b"\n\ndata: " + error + b"\n\n"

    def chat(connection):
        if where == "refused":
            connection.sendall(response(400, "application/json", error, reason=head.decode("latin-1")).replace(b"X-", head))
        else:
            connection.sendall(b"HTTP/1.1 200 " + head + b"\r\nX-Odd: " + head + b"\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            for event in events():
                connection.sendall(event)

    def behave(connection):
        method, path, _ = read_request(connection)
        if method == "POST":
            chat(connection)
        elif where == "location":
            connection.sendall(b"HTTP/1.1 302 " + head + b"\r\nLocation: http://" + head + b"\r\nContent-Length: 0\r\n\r\n")
        elif where == "key":
            connection.sendall(response(401, "application/json", error))
        elif where == "loading":
            connection.sendall(response(503, "text/plain", HOSTILE + b"\r\nfullstop: forged" + b"x" * long))
        elif path.endswith("/v1/models"):
            connection.sendall(response(200, "application/json", b'{"object":"list","data":[{"id":"' + name + b'","object":"model"}]}'))
        elif path.endswith("/props"):
            connection.sendall(response(200, "application/json", b'{"default_generation_settings":{"n_ctx":4096},"total_slots":4,"build_info":"' + name
                                        + b'","model_path":"' + name + b'"}'))
        elif method:
            connection.sendall(response(404, "application/json", error))
    return behave
