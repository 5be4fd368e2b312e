"""A real llama-server on loopback with the small model, as a context manager. LLAMA_SERVER names the program, MODEL the file."""

import os
import pathlib
import socket
import subprocess
import time
import urllib.request


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class LlamaServer:
    def __init__(self, *arguments):
        program = pathlib.Path(os.environ["LLAMA_SERVER"])
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [str(program), "-m", os.environ["MODEL"], "--host", "127.0.0.1", "--port", str(self.port), "--no-webui",
                         "-t", "2", "--metrics", *arguments]
        self._environment = {**os.environ, "LD_LIBRARY_PATH": str(program.parent)}

    def __enter__(self):
        self.process = subprocess.Popen(self._command, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"llama-server ended at once with {self.process.returncode}: {' '.join(self._command)}")
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=2) as answer:
                    if answer.status == 200:
                        return self
            except OSError:
                time.sleep(0.1)
        self.__exit__()
        raise RuntimeError("llama-server did not become healthy in two minutes")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
