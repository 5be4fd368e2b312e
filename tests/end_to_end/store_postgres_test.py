#!/usr/bin/env python3
"""Records in a real PostgreSQL of the test's own: probe and gateway meet in it, and a database that is killed, frozen, or dies with a
transaction in doubt harms no answer, loses no record and writes none twice. FULLSTOP names the program, SCRIPTED_SERVER a server."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse
import urllib.request

from postgres_cluster import PASSWORD, Cluster

ANSWER = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
          b'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}\n\n'
          b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
BODY = json.dumps({"messages": [{"role": "user", "content": "x"}], "stream": True}).encode()
CLUSTER = Cluster()


def setUpModule():
    CLUSTER.__enter__()


def tearDownModule():
    CLUSTER.__exit__()


def fullstop(*words, password=PASSWORD):
    return subprocess.run([os.environ["FULLSTOP"], *words], capture_output=True, text=True, timeout=60, check=False, env=CLUSTER.environment(password))


class Program:
    """A server process that says where it listens; what it says on standard error is kept."""

    def __init__(self, *words):
        self._errors = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=self._errors, text=True, env=CLUSTER.environment())
        self.url = self.process.stdout.readline().strip().rsplit(" ", 1)[-1]

    def __enter__(self):
        if not self.url.startswith("http"):
            self.__exit__()
            raise RuntimeError(f"it did not start: {self.said()}")
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)
        self.process.stdout.close()
        self._said = self.said()
        self._errors.close()

    def said(self):
        if self._errors.closed:
            return self._said
        self._errors.seek(0)
        return self._errors.read()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def metric(self, name):
        with urllib.request.urlopen(self.url + "/metrics", timeout=5) as page:
            return next(int(line.split()[-1]) for line in page.read().decode().splitlines() if line.startswith(name + " "))


class Upstream:
    """Answers every request with ANSWER."""

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self._listener.accept()[0],), daemon=True).start()

    def _serve(self, connection):
        with connection, contextlib.suppress(OSError):
            got = b""
            while not got.endswith(BODY):
                got += connection.recv(65536)
            connection.sendall(ANSWER)

    def __exit__(self, *_):
        self._listener.close()


class Proxy:
    """Between a client and the database. The reply to the `fatal`-th COMMIT never comes: the database has done it, and the connection breaks."""

    def __init__(self, fatal):
        self._fatal, self.commits, self.cuts = fatal, 0, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", CLUSTER.port))
                deaf = threading.Event()
                threading.Thread(target=self._to_server, args=(client, server, deaf), daemon=True).start()
                threading.Thread(target=self._to_client, args=(client, server, deaf), daemon=True).start()

    def _to_server(self, client, server, deaf):
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if b"COMMIT\0" in data:
                    self.commits += 1
                    if self.commits == self._fatal:
                        deaf.set()
                server.sendall(data)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _to_client(self, client, server, deaf):
        with client, server, contextlib.suppress(OSError):
            while data := server.recv(65536):
                if deaf.is_set():
                    self.cuts += 1
                    client.shutdown(socket.SHUT_RDWR)  # closing alone waits for the thread that reads
                    return
                client.sendall(data)

    def close(self):
        self._listener.close()


def gateway(upstream, store, *words):
    return Program(os.environ["FULLSTOP"], "gateway", "--upstream", upstream, "--no-observe", "--listen", "127.0.0.1:0", "--quiet", "--store", store, *words)


def ask(url, name):
    """The answer's body, and how long it took."""
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Request-Id: {name}\r\nContent-Length: {len(BODY)}\r\nConnection: close\r\n\r\n"
    began, got = time.monotonic(), b""
    with socket.create_connection(("127.0.0.1", urllib.parse.urlparse(url).port), timeout=20) as client:
        client.sendall(head.encode() + BODY)
        while data := client.recv(65536):
            got += data
    return got, time.monotonic() - began


class Load:
    """Eight users that ask one after the other until the end."""

    def __init__(self, url):
        self._url, self._over, self.answers = url, threading.Event(), {}
        self._pool = concurrent.futures.ThreadPoolExecutor(8)
        self._users = [self._pool.submit(self._use, user) for user in range(8)]

    def _use(self, user):
        number = 0
        while not self._over.is_set():
            number += 1
            name = f"answer-{user}-{number}"
            self.answers[name] = (time.monotonic(), *ask(self._url, name))
            time.sleep(0.01)

    def end(self):
        self._over.set()
        for user in self._users:
            user.result(30)


class Store(unittest.TestCase):
    databases = 0

    def setUp(self):
        Store.databases += 1
        self.database = f"runs_{Store.databases}"
        CLUSTER.psql(f"CREATE DATABASE {self.database}")
        self.url = CLUSTER.url(self.database)

    def value(self, sql):
        return CLUSTER.value(sql, self.database)

    def stored(self):
        return sorted(self.value("SELECT id FROM fullstop.records").split())

    def wait_for(self, condition, what):
        end = time.monotonic() + 15
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)


class Meeting(Store):
    def test_probe_and_gateway_are_joined_by_request_id_and_the_run_is_judged_again(self):
        with Program(os.environ["SCRIPTED_SERVER"], "--faster", "20") as server, gateway(server.url, self.url) as front, tempfile.TemporaryDirectory() as folder:
            document, again = pathlib.Path(folder) / "run.json", pathlib.Path(folder) / "again.json"
            result = fullstop("probe", front.url, "--quick", "--levels", "1,2", "--no-control", "--budget", "3s", "--store", self.url, "--json", str(document))
            self.assertIn(result.returncode, (0, 1, 3), result.stderr)
            self.assertEqual(front.end(), 0)
            run = json.loads(document.read_text())
            judged = fullstop("report", run["id"], "--store", self.url, "--json", str(again))
            self.assertEqual(judged.returncode, result.returncode, judged.stderr)
            self.assertEqual(json.loads(again.read_text()), run)
        joined = int(self.value("SELECT count(*) FROM fullstop.records p JOIN fullstop.records g ON p.id = g.id AND g.arm = 'gateway' AND p.arm <> 'gateway' "
                                "WHERE p.transport = g.transport AND g.recorded::jsonb->>'fullstop_cause' = 'natural_end'"))
        self.assertEqual(joined, len(run["records"]))
        listed = fullstop("report", "--list", "--store", self.url).stdout
        self.assertIn(f"{len(run['records'])} answers", listed)
        self.assertEqual(len(listed.splitlines()), 2)


class Outage(Store):
    def test_a_database_that_is_killed_under_load_harms_no_answer_and_misses_no_record(self):
        with Upstream() as upstream, gateway(upstream.url, self.url) as front:
            load = Load(front.url)
            self.wait_for(lambda: len(self.stored()) > 50, "records are stored")
            CLUSTER.kill()
            killed = time.monotonic()
            try:
                self.wait_for(lambda: front.metric("fullstop_gateway_records_waiting") > 50, "records wait")
                time.sleep(0.5)
            finally:
                CLUSTER.start()
            back = time.monotonic()
            self.wait_for(lambda: front.metric("fullstop_gateway_records_waiting") < 20, "records arrive")
            time.sleep(0.3)
            load.end()
            self.assertEqual(front.metric("fullstop_gateway_records_dropped_total"), 0)
            self.assertEqual(front.metric("fullstop_gateway_records_total"), len(load.answers))
            self.assertEqual(front.end(), 0)
            said = front.said()
        self.assertEqual(self.stored(), sorted(load.answers), "each once")
        self.assertEqual({body.partition(b"\r\n\r\n")[2] for _, body, _ in load.answers.values()}, {next(iter(load.answers.values()))[1].partition(b"\r\n\r\n")[2]})
        self.assertTrue(all(b"[DONE]" in body and body.startswith(b"HTTP/1.1 200") for _, body, _ in load.answers.values()))
        away = [took for began, _, took in load.answers.values() if killed < began < back]
        there = [took for began, _, took in load.answers.values() if began < killed]
        self.assertGreater(len(away), 50)
        print(f"\n  {len(load.answers)} answers, {len(away)} of them while the database was away; slowest {max(away) * 1000:.0f} ms, else {max(there) * 1000:.0f} ms", flush=True)
        self.assertLess(max(away), 2, "nobody waits for the database")
        self.assertEqual((said.count("the relay goes on, and records wait"), said.count(f"{self.url} is back")), (1, 1), said)
        self.assertEqual(self.value("SELECT finished FROM fullstop.runs"), "1")

    def test_a_transaction_that_nobody_knows_the_end_of_is_written_once(self):
        proxy = Proxy(fatal=3)
        self.addCleanup(proxy.close)
        with Upstream() as upstream, gateway(upstream.url, self.url.replace(f":{CLUSTER.port}/", f":{proxy.port}/")) as front:
            names = [f"answer-{number}" for number in range(40)]
            for name in names:
                ask(front.url, name)
            self.assertEqual(front.end(), 0)
        self.assertEqual(proxy.cuts, 1)
        self.assertEqual(self.stored(), sorted(names))

    def test_a_frozen_database_keeps_neither_answers_nor_the_end_waiting(self):
        with Upstream() as upstream, gateway(upstream.url, self.url) as front:
            ask(front.url, "before")
            self.wait_for(lambda: self.stored() == ["before"], "it is stored")
            CLUSTER.signal(signal.SIGSTOP)
            try:
                self.assertLess(max(ask(front.url, f"frozen-{number}")[1] for number in range(20)), 2)
                began = time.monotonic()
                self.assertEqual(front.end(), 0)
                self.assertLess(time.monotonic() - began, 10)
            finally:
                CLUSTER.signal(signal.SIGCONT)
            self.assertIn(f"20 of 21 answers may have no record in {self.url}", front.said())

    def test_a_probe_whose_database_dies_says_so_and_goes_on_in_memory(self):
        with Program(os.environ["SCRIPTED_SERVER"], "--faster", "20") as server, tempfile.TemporaryDirectory() as folder:
            document = pathlib.Path(folder) / "run.json"
            with subprocess.Popen([os.environ["FULLSTOP"], "probe", server.url, "--quick", "--levels", "1,2", "--no-control", "--budget", "3s", "--store", self.url, "--json", str(document)],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=CLUSTER.environment()) as probing:
                self.wait_for(lambda: int(self.value("SELECT CASE WHEN to_regclass('fullstop.records') IS NULL THEN 0 ELSE 1 END")) and len(self.stored()) > 3, "it runs")
                CLUSTER.kill()
                try:
                    errors = probing.communicate(timeout=60)[1]
                finally:
                    CLUSTER.start()
            run = json.loads(document.read_text())
        self.assertIn(probing.returncode, (0, 1, 3), errors)
        self.assertIn("its records wait", errors)
        self.assertRegex(errors, r"the run goes on in memory: \d+ records and readings may be missing in the store " + self.url)
        self.assertIn("is PostgreSQL running there", errors)
        self.assertGreater(len(run["records"]), len(self.stored()))
        self.assertIn("unfinished", fullstop("report", "--list", "--store", self.url).stdout)


class Mistakes(Store):
    def expect(self, result, code, *words):
        self.assertEqual(result.returncode, code, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertNotIn("secret", result.stdout + result.stderr)

    def test_each_is_named_with_the_next_step_and_without_the_password(self):
        with_password = self.url.replace("postgres@", f"postgres:{urllib.parse.quote(PASSWORD, safe='')}@")
        relay = ["gateway", "--upstream", "http://127.0.0.1:9", "--listen", "127.0.0.1:0", "--store"]
        probe = ["probe", "http://127.0.0.1:9", "--store"]
        self.expect(fullstop(*relay, self.url, password="secret-but-wrong"), 2, "--store", "password authentication failed", "PGPASSWORD")
        self.expect(fullstop(*probe, with_password + "x", password=""), 2, "--store", f'database "{self.database}x" does not exist', "createdb")
        self.expect(fullstop(*relay, "postgresql://me:sec@ret/secret@db/runs"), 2, "%40")
        self.expect(fullstop(*relay, "postgresql://me:secret@db/runs?colour=blue"), 2, "colour")
        self.expect(fullstop(*probe, "mysql://me:secret@db/runs"), 2, "mysql", "postgresql://")
        self.expect(fullstop(*relay, "postgresql://me:secret@127.0.0.1:1/runs"), 4, "refused", "host and port")
        self.expect(fullstop("report", "--list", "--store", with_password, password=""), 2, "no store of runs")
        with Upstream() as upstream, gateway(upstream.url, with_password) as front:
            ask(front.url, "one")
            self.assertEqual(front.end(), 0)
            self.assertNotIn("secret", front.said())
        shown = fullstop("report", "last", "--store", with_password, password="")
        self.assertIn(self.url, shown.stdout)
        self.expect(shown, 3)


if __name__ == "__main__":
    unittest.main()
