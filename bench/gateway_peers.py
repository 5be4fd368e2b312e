"""The relays that `fullstop gateway` is compared with: how each is found, configured for streaming, and started on a port.

Each takes one connection's worth of tuning that its own documents recommend for server-sent events, one thread, no access log."""

import json
import pathlib
import signal
import subprocess
import time
import urllib.request

import debian_programs

NGINX = """
daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 8192; }}
http {{
    access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
    upstream server {{ server 127.0.0.1:{upstream}; keepalive 512; }}
    server {{
        listen 127.0.0.1:{port}; keepalive_requests 1000000; client_max_body_size 0;
        location / {{ proxy_pass http://server; {settings} }}
    }}
}}
"""
NGINX_TUNED = """proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_request_buffering off; proxy_read_timeout 1800s;"""
HAPROXY = """
global
    nbthread 1
    maxconn 8192
defaults
    mode http
    timeout connect 5s
    timeout client 1800s
    timeout server 1800s
    option http-no-delay
    http-reuse always
listen front
    bind 127.0.0.1:{port}
    server one 127.0.0.1:{upstream}
"""
CADDY = """
{{
    admin off
    auto_https off
    storage file_system {folder}/storage
}}
http://:{port} {{
    bind 127.0.0.1
    reverse_proxy 127.0.0.1:{upstream}
}}
"""


def write(path, text):
    path.write_text(text)
    return str(path)


class Fullstop:
    name = "fullstop"

    def __init__(self, program, *words):
        self._program, self._words = str(program), words

    def command(self, folder, port, upstream):
        return [self._program, "gateway", "--upstream", f"http://127.0.0.1:{upstream}", "--listen", f"127.0.0.1:{port}", "--quiet", *self._words]

    def environment(self):
        return {}


class Nginx:
    packages = ["nginx"]

    def __init__(self, deps, settings=NGINX_TUNED, name="nginx tuned"):
        self.name, self._settings = name, settings
        self._program, self._environment = debian_programs.find("nginx", self.packages, deps), debian_programs.library_path(deps)

    def command(self, folder, port, upstream):
        text = NGINX.format(folder=folder, port=port, upstream=upstream, settings=self._settings)
        return [self._program, "-e", f"{folder}/error.log", "-p", str(folder), "-c", write(folder / "nginx.conf", text)]

    def environment(self):
        return self._environment


class Haproxy:
    name, packages = "haproxy no-delay", ["haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1"]

    def __init__(self, deps, text=HAPROXY):
        self._text = text
        self._program, self._environment = debian_programs.find("haproxy", self.packages, deps), debian_programs.library_path(deps)

    def command(self, folder, port, upstream):
        return [self._program, "-db", "-q", "-f", write(folder / "haproxy.cfg", self._text.format(port=port, upstream=upstream))]

    def environment(self):
        return self._environment


class Caddy:
    name, packages = "caddy", ["caddy"]

    def __init__(self, deps, text=CADDY):
        self._text = text
        self._program = debian_programs.find("caddy", self.packages, deps)

    def command(self, folder, port, upstream):
        text = self._text.format(folder=folder, port=port, upstream=upstream)
        return [self._program, "run", "--config", write(folder / "Caddyfile", text), "--adapter", "caddyfile"]

    def environment(self):
        return {"GOMAXPROCS": "1", "XDG_DATA_HOME": "/tmp", "XDG_CONFIG_HOME": "/tmp"}


class Running:
    """One relay as a process of its own."""

    def __init__(self, peer, folder, port, upstream, prefix=(), environment=None):
        folder.mkdir(parents=True, exist_ok=True)
        self.name, self.port = peer.name, port
        self._log = open(folder / "log", "wb")
        command = [*prefix, *peer.command(folder.resolve(), port, upstream)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT, env={**(environment or {}), **peer.environment()})

    def wait_until_up(self, path="/v1/models", limit_s=60):
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=2) as answer:
                    return json.loads(answer.read())
            except (OSError, ValueError):
                time.sleep(0.05)
        raise SystemExit(f"{self.name} did not come up (log: {self._log.name})")

    def cpu_us(self):
        """Time on a core of all its threads, by the scheduler's own clock."""
        return sum(int(path.read_text().split()[0]) for path in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")) / 1000

    def peak_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)
        self._log.close()
