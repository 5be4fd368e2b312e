#!/usr/bin/env python3
"""A PostgreSQL of the test's own: made in a temporary folder, on a free loopback port, ended by its own process id. No other
server on the machine is touched. As root it runs as the user `postgres`, since the database refuses root.

    postgres_cluster.py COMMAND...     runs COMMAND with a cluster beside it: its URL in POSTGRES_URL, its password in PGPASSWORD"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

OWNER, PASSWORD = "postgres", "a:secret/with@marks"
READY_S = 30


def programs():
    """The folder of initdb and postgres: Debian keeps one for each version, and none in PATH."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    own = [str(path) for path in found] or [path for path in [shutil.which("initdb")] if path]
    if not own:
        raise RuntimeError("no PostgreSQL here: ./setup --tests installs it")
    return pathlib.Path(own[-1]).parent


class Cluster:
    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fullstop-postgres-"))
        self._as_owner = ["setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups"] if os.geteuid() == 0 else []
        (self.folder / "password").write_text(PASSWORD)
        if self._as_owner:
            for path in [self.folder, self.folder / "password"]:
                shutil.chown(path, OWNER, OWNER)
        made = subprocess.run([*self._as_owner, programs() / "initdb", "--no-sync", "--auth=scram-sha-256", f"--pwfile={self.folder}/password", f"--username={OWNER}",
                               "--encoding=UTF8", "--locale=C.UTF-8", self.folder / "data"], capture_output=True, text=True, cwd="/", check=False)
        if made.returncode != 0:
            raise RuntimeError(f"initdb: {made.stdout}{made.stderr}")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.process = None
        self.start()
        return self

    def start(self):
        """fsync is off: the machine does not crash, only the processes do. All memory it shares lies in its folder, and goes with it."""
        words = ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", f"port={self.port}", "-c", f"unix_socket_directories={self.folder}",
                 "-c", "max_connections=40", "-c", "dynamic_shared_memory_type=mmap", "-c", "shared_buffers=16MB"]
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            if self.process is None or self.process.poll() is not None:  # after a kill, the old shared memory may be there for a moment
                with (self.folder / "log").open("ab") as log:
                    self.process = subprocess.Popen([*self._as_owner, programs() / "postgres", "-D", self.folder / "data", *words], stdout=log, stderr=log, cwd="/")
            if self.psql("SELECT 1", check=False).returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError(f"the database does not start: {(self.folder / 'log').read_text()[-2000:]}")

    def signal(self, number):
        """To all its processes, the first one first; each of them is in a group of its own."""
        own = f"PPid:\t{self.process.pid}\n"
        children = []
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                if own in status.read_text():
                    children.append(int(status.parent.name))
        for pid in [self.process.pid, *children]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self):
        """Everything at once, as kill -9 or a lost machine would."""
        self.signal(signal.SIGKILL)
        self.process.wait(20)

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGQUIT)  # at once, without a word to its clients
        self.process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database=OWNER, user=OWNER):
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def environment(self, password=PASSWORD):
        return {**os.environ, "PGPASSWORD": password, "PGCONNECT_TIMEOUT": "5"}

    def psql(self, sql, database=OWNER, check=True):
        return subprocess.run([programs() / "psql", "--no-psqlrc", "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", sql, self.url(database)], env=self.environment(),
                              capture_output=True, text=True, timeout=30, check=check)

    def value(self, sql, database=OWNER):
        return self.psql(sql, database).stdout.strip()


def main():
    with Cluster() as cluster:
        return subprocess.run(sys.argv[1:], env={**cluster.environment(), "POSTGRES_URL": cluster.url()}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
