"""A real Redis for tests: the server of the package redis-tools (which runs nothing by itself) on a free port of this machine, in a
folder of its own, without persistence; and just enough of a client to look into it. REDIS_SERVER names another one, such as Valkey's."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time


class Redis:
    """One connection; a call is one command."""

    def __init__(self, port, password=None):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._file = self._socket.makefile("rb")
        if password:
            self("AUTH", password)

    def __call__(self, *words):
        texts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self._socket.sendall(b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%s\r\n" % (len(text), text) for text in texts))
        return self._reply()

    def _reply(self):
        line = self._file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._file.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return [self._reply() for _ in range(int(rest))]
        raise ConnectionError(f"{line!r}")

    def pairs(self, *words):
        flat = self(*words)
        return dict(zip(flat[::2], flat[1::2]))

    def close(self):
        self._file.close()
        self._socket.close()


class Store:
    """`with Store() as store:`; kill(), start() again with nothing remembered, stop_answering()."""

    def __init__(self, *options, password=None):
        self._options, self._password = options, password

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        self.port = free_port()
        self.start()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        self._folder.cleanup()

    @property
    def url(self):
        return f"redis://{':' + self._password + '@' if self._password else ''}127.0.0.1:{self.port}"

    def start(self):
        secret = ["--requirepass", self._password] if self._password else []
        self.process = subprocess.Popen([server(self._folder.name), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                                         "--dir", self._folder.name, *secret, *self._options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while True:
            try:
                client = self.client()
                client("PING")
                return client.close()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def kill(self):
        self.process.kill()
        self.process.wait(10)

    def stop_answering(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def client(self):
        return Redis(self.port, self._password)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def server(folder):
    """One program is server and checker: which of them it is, it reads from its name."""
    named = os.environ.get("REDIS_SERVER") or shutil.which("redis-server")
    if named:
        return named
    link = pathlib.Path(folder) / "redis-server"
    if not link.exists():
        program = shutil.which("redis-check-rdb")
        if program is None:
            raise RuntimeError("no Redis: ./setup --tests installs redis-tools")
        link.symlink_to(program)
    return str(link)
