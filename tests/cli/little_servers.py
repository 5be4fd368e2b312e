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
