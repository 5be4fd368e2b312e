#!/usr/bin/env python3
"""Bad input of every kind: each gets a message that names the cause and the next step, the exit code of the contract, no
hang, and nothing that was measured is lost. The program under test is named by FULLSTOP."""

import csv
import json
import os
import pathlib
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import little_servers as servers

FULLSTOP = os.environ["FULLSTOP"]
PATIENCE = 120  # seconds; every wait of the program has its own, shorter limit


class BadInput(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)
        self.addCleanup(self._folder.cleanup)

    def run_fullstop(self, *words, store="none", **kwargs):
        words = list(words)
        if words and words[0] == "probe" and store is not None:
            words += ["--store", str(store)]
        return subprocess.run([FULLSTOP, *words], capture_output=True, text=True, timeout=PATIENCE,
                              env={**os.environ, "XDG_STATE_HOME": str(self.folder / "state")}, **kwargs)

    def expect(self, result, code, *words):
        said = result.stdout + result.stderr
        self.assertEqual(result.returncode, code, said)
        for word in words:
            self.assertIn(word.lower(), said.lower())
        self.assertNotIn("internal error", said)
        return said

    # --- usage: nothing is sent ---------------------------------------------------------------------------------------
    def test_levels_that_cannot_be_probed(self):
        for levels in ["0", "100000", "-1", "two", "1,,x", ","]:
            with self.subTest(levels=levels):
                self.expect(self.run_fullstop("probe", "http://127.0.0.1:9", f"--levels={levels}"), 2, "--levels")

    def test_mistyped_words_get_the_nearest_known_one(self):
        self.expect(self.run_fullstop("prob"), 2, "did you mean 'probe'")
        self.expect(self.run_fullstop("probe", "--level", "1"), 2, "--levels")

    def test_values_out_of_range(self):
        for words in [("--repeat", "0"), ("--max-tokens", "many"), ("--budget", "soon"), ("--temperature", "-1"), ("--top-p", "0"),
                      ("--start", "whenever"), ("--api", "soap"), ("--header", "no colon"), ("--api-key-env", "FULLSTOP_NO_SUCH_VARIABLE"),
                      ("--client-idle", "-3s")]:
            with self.subTest(words=words):
                self.expect(self.run_fullstop("probe", "http://127.0.0.1:9", *words), 2, words[0])

    def test_urls_that_are_none(self):
        for url in ["127.0.0.1:8080", "ftp://127.0.0.1", "http://", "http://127.0.0.1:99999"]:
            with self.subTest(url=url):
                self.expect(self.run_fullstop("probe", url), 2)

    def test_a_bad_line_in_the_prompts_is_named(self):
        file = self.folder / "prompts.jsonl"
        file.write_text('{"id":"a","prompt":"Hi"}\n{"id":"b","prompt":7}\n')
        self.expect(self.run_fullstop("probe", "http://127.0.0.1:9", "--prompts", str(file)), 2, "prompts.jsonl", "2", "prompt")
        self.expect(self.run_fullstop("probe", "http://127.0.0.1:9", "--prompts", str(self.folder / "none.jsonl")), 2, "none.jsonl")
        file.write_text("")
        self.expect(self.run_fullstop("probe", "http://127.0.0.1:9", "--prompts", str(file)), 2, "prompts.jsonl")

    # --- serve ------------------------------------------------------------------------------------------------------
    def serve_with(self, kib, *words):
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (kib * 1024, kib * 1024))
        return self.run_fullstop("serve", "--listen", "127.0.0.1:0", "--model", os.environ["MODEL"], *words, preexec_fn=limit)

    def test_a_model_larger_than_memory_is_refused_before_it_is_loaded(self):
        self.expect(self.serve_with(200_000), 4, "for its weights", "are available (the limit on address space", "smaller model or quantisation")
        self.expect(self.serve_with(500_000, "--kv-tokens", "400000"), 4, "tokens of KV", "give --kv-tokens")

    # --- could not measure --------------------------------------------------------------------------------------------
    def test_nobody_listens(self):
        self.expect(self.run_fullstop("probe", "http://127.0.0.1:9"), 4, "refused", "127.0.0.1")

    def test_a_host_without_an_address(self):
        self.expect(self.run_fullstop("probe", "http://no-such-host.invalid:8080"), 4, "no-such-host.invalid")

    def test_tls_to_a_plain_port(self):
        with servers.LittleServer(servers.with_models(lambda c: None)) as server:
            self.expect(self.run_fullstop("probe", server.url.replace("http:", "https:")), 4, "TLS", "http://")

    def test_tls_to_a_plain_port_that_answers_in_plain_words(self):
        def puzzled(connection):
            connection.recv(65536)
            connection.sendall(servers.response(400, "text/plain", "what is this?"))
        with servers.LittleServer(puzzled) as server:
            self.expect(self.run_fullstop("probe", server.url.replace("http:", "https:")), 4, "TLS", "http://")

    def test_a_key_is_wanted(self):
        with servers.LittleServer(servers.always(servers.response(401, "application/json", '{"error":{"message":"Invalid API key"}}'))) as server:
            self.expect(self.run_fullstop("probe", server.url), 4, "401", "--api-key-env")

    def test_a_model_that_is_not_there(self):
        with servers.LittleServer(servers.with_models(lambda c: None)) as server:
            self.expect(self.run_fullstop("probe", server.url, "--model", "huge"), 4, "huge", "tiny")

    def test_a_web_page_where_an_api_should_be(self):
        page = servers.response(200, "text/html", "<!doctype html><html><title>Welcome</title></html>")
        with servers.LittleServer(servers.always(page)) as server:
            self.expect(self.run_fullstop("probe", server.url), 4, "HTML")

    def test_a_head_without_end(self):
        def endless(connection):
            servers.read_request(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while True:
                connection.sendall(b"X-More: " + b"a" * 4000 + b"\r\n")
        with servers.LittleServer(endless) as server:
            self.expect(self.run_fullstop("probe", server.url), 4)

    def test_a_server_that_accepts_and_never_answers(self):
        with servers.LittleServer(lambda connection: time.sleep(PATIENCE)) as server:
            started = time.monotonic()
            self.expect(self.run_fullstop("probe", server.url), 4, "answer")
            self.assertLess(time.monotonic() - started, PATIENCE)

    def test_every_request_refused_has_nothing_to_do_with_load(self):
        refuse = lambda c: c.sendall(servers.response(404, "application/json", '{"error":{"message":"model tiny is not loaded"}}'))
        with servers.LittleServer(servers.with_models(refuse)) as server:
            self.expect(self.run_fullstop("probe", server.url, "--quick", "--levels", "1,2"), 4, "model tiny is not loaded")

    # --- the answers themselves are bad: measured, reported, bounded ---------------------------------------------------
    def test_an_event_of_a_gibibyte_is_bounded(self):
        def huge(connection):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: ")
            block = b"a" * (1 << 20)
            for _ in range(1024):
                connection.sendall(block)
        with servers.LittleServer(servers.with_models(huge)) as server:
            measure = ["/usr/bin/env", "python3", "-c",
                       "import resource,subprocess,sys; r=subprocess.run(sys.argv[1:]); "
                       "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(r.returncode)"]
            result = subprocess.run([*measure, FULLSTOP, "probe", server.url, "--quick", "--levels", "1", "--store", "none", "--no-control", "--quiet"],
                                    capture_output=True, text=True, timeout=PATIENCE)
            self.assertIn(result.returncode, (1, 3, 4), result.stdout + result.stderr)
            peak_kib = int(result.stdout.rsplit("peak ", 1)[1])
            self.assertLess(peak_kib, 256 * 1024, "a 1 GiB event must not be kept")

    def expect_printable(self, written):
        """Valid UTF-8 of which nothing drives a terminal, reorders or hides text; lines end in a newline alone."""
        text = written.decode("utf-8")
        bad = [c for c in text if c not in "\n\t" and (ord(c) < 0x20 or 0x7f <= ord(c) < 0xa0 or c in "\u061c\u200e\u200f\u2028\u2029\ufeff"
                                                       or 0x202a <= ord(c) <= 0x202e or 0x2066 <= ord(c) <= 0x2069)]
        self.assertEqual(bad, [])
        return text

    def test_nothing_that_a_server_says_drives_the_terminal(self):
        for where in ("location", "key", "loading", "refused", "nowhere"):
            for long in (0, 1_000_000):
                with self.subTest(where=where, long=long), servers.LittleServer(servers.hostile(where, long)) as server:
                    words = ["--quick", "--levels", "1,2", "--no-control", "--budget", "20s", "--store", str(self.folder / f"{where}{long}.sqlite")]
                    result = subprocess.run([FULLSTOP, "probe", server.url, *words, "--csv", str(self.folder / "a.csv"), "--markdown", str(self.folder / "a.md"),
                                             "--json", str(self.folder / "a.json"), "--junit", str(self.folder / "a.xml")],
                                            capture_output=True, timeout=PATIENCE)
                    self.assertIn(result.returncode, (1, 3, 4), result.stderr)
                    said = self.expect_printable(result.stdout) + self.expect_printable(result.stderr)
                    self.assertIn("owned", said)
                    self.assertNotIn("\nfullstop: forged", said)
                    self.assertLess(len(said), 100_000)
                    if where not in ("refused", "nowhere"):
                        continue
                    for file in ("a.csv", "a.json", "a.xml", "a.md"):
                        self.expect_printable((self.folder / file).read_bytes().replace("@\u200b".encode(), b"@"))
                    for line in csv.reader((self.folder / "a.csv").read_text().splitlines()):
                        self.assertEqual([cell for cell in line if cell.lstrip()[:1] in ("=", "+", "-", "@") and cell.strip()], [])
                    shown = subprocess.run([FULLSTOP, "report", "--list", "--store", words[-1]], capture_output=True, timeout=PATIENCE)
                    self.expect_printable(shown.stdout + shown.stderr)

    def probe_within(self, limit_mib, behave, *words):
        """A probe of one bad server: (result, run document, peak in KiB)."""
        document = self.folder / "run.json"
        measure = [sys.executable, "-c", "import resource,subprocess,sys; r=subprocess.run(sys.argv[1:]); "
                   "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(r.returncode)"]
        with servers.LittleServer(behave) as server:
            result = subprocess.run([*measure, FULLSTOP, "probe", server.url, "--quick", "--levels", "1", "--no-control", "--budget", "10s", "--quiet",
                                     "--json", str(document), "--store", str(self.folder / "runs.sqlite"), *words],
                                    capture_output=True, text=True, timeout=PATIENCE)
        self.assertIn(result.returncode, (1, 3, 4), result.stdout + result.stderr)
        self.assertLess(int(result.stdout.rsplit("peak ", 1)[1]), limit_mib * 1024)
        return json.loads(document.read_text())

    def test_an_answer_without_end_is_ended_and_is_neither_whole_nor_cut(self):
        event = b'data: {"choices":[{"index":0,"delta":{"content":"' + b"word " * 200 + b'"},"finish_reason":null}]}\n\n'
        bad = {"text": event * 64, "comments": b": ping\n\n" * 8192, "nothing": b'data: {"choices":[{"index":0,"delta":{}}]}\n\n' * 1024}
        for name, piece in bad.items():
            def endless(connection, piece=piece):
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
                while True:
                    connection.sendall(piece)
            with self.subTest(name=name):
                answers = self.probe_within(400, servers.with_models(endless))["records"]
                self.assertTrue(answers)
                ended = [a for a in answers if "is larger than" in json.dumps(a)]
                self.assertGreaterEqual(len(ended), 1, answers[0])
                for answer in ended:
                    self.assertEqual(answer["cause"], "measurement_artefact")

    def test_files_without_end_are_refused(self):
        for words in (["probe", "http://127.0.0.1:9", "--prompts", "/dev/zero"], ["gateway", "--config", "/dev/zero"], ["report", "/dev/zero"],
                      ["simulate", "--trace", "/dev/zero"]):
            with self.subTest(words=words):
                self.expect(self.run_fullstop(*words), 2, "/dev/zero is larger than any")
        self.assertIn("/dev/stdin, line 1", self.run_fullstop("probe", "http://127.0.0.1:9", "--prompts", "/dev/stdin", input='{"prompt":7}\n').stderr)

    def test_a_key_that_a_server_repeats_is_not_shown_and_not_stored(self):
        def repeat(connection):
            words = "no, sk-very-secret and in-the-query"
            connection.sendall(servers.response(429, "application/json", json.dumps({"error": {"message": words, "code": "sk-very-secret"}})))
        with servers.LittleServer(servers.with_models(repeat)) as server:
            store, captures = self.folder / "runs.sqlite", self.folder / "captures"
            result = subprocess.run([FULLSTOP, "probe", server.url + "/v1?api_key=in-the-query", "--api-key-env", "KEY", "--quick", "--levels", "1", "--no-control",
                                     "--budget", "10s", "--store", str(store), "--captures", str(captures), "--json", str(self.folder / "run.json")],
                                    capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, "KEY": "sk-very-secret"})
            self.assertIn("[key]", result.stdout + result.stderr)
            kept = [result.stdout.encode(), result.stderr.encode()] + [file.read_bytes() for file in self.folder.rglob("*") if file.is_file()]
            for each in kept:
                self.assertNotIn(b"sk-very-secret", each)
                self.assertNotIn(b"in-the-query", each)

    def test_a_limit_on_the_size_of_files_is_an_error_that_is_told(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        with self.answering() as server:
            for words in (["--json", str(self.folder / "run.json")], ["--captures", str(self.folder / "captures")]):
                with self.subTest(words=words):
                    result = self.run_fullstop("probe", server.url, "--quick", "--levels", "1", "--no-control", *words, preexec_fn=limit)
                    self.assertGreaterEqual(result.returncode, 0, result.stderr)

    # --- disks --------------------------------------------------------------------------------------------------------
    def answering(self):
        def chat(connection):
            words = "".join('data: {"choices":[{"index":0,"delta":{"content":"Yes. "},"finish_reason":null}]}\n\n' for _ in range(5))
            body = words + 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n' \
                           'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":5}}\n\ndata: [DONE]\n\n'
            connection.sendall(servers.response(200, "text/event-stream", body))
        return servers.LittleServer(servers.with_models(chat))

    def test_a_store_that_cannot_be_written_is_said_before_anything_is_sent(self):
        with self.answering() as server:
            for store in ["/proc/runs.sqlite", "/dev/full/runs.sqlite"]:
                with self.subTest(store=store):
                    before = server.accepted
                    self.expect(self.run_fullstop("probe", server.url, store=store), 2, "--store")
                    self.assertEqual(server.accepted, before)

    def test_a_store_that_is_no_database(self):
        file = self.folder / "notes.txt"
        file.write_text("not a database, and long enough to be read as one " * 30)
        with self.answering() as server:
            self.expect(self.run_fullstop("probe", server.url, store=file), 2, "notes.txt")
            self.assertIn("not a database", file.read_text())

    def test_a_full_disk_under_a_document_loses_no_run(self):
        store = self.folder / "runs.sqlite"
        with self.answering() as server:
            result = self.run_fullstop("probe", server.url, "--quick", "--levels", "1,2", "--no-control", "--json", "/dev/full", store=store)
            said = self.expect(result, result.returncode, "/dev/full")
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("answers", said)
            with sqlite3.connect(store) as database:
                self.assertGreater(database.execute("select count(*) from records").fetchone()[0], 0)
            again = self.run_fullstop("report", "last", "--store", str(store))
            self.assertIn("answers", again.stdout, again.stderr)

    def test_json_on_standard_output_stands_alone(self):
        with self.answering() as server:
            result = self.run_fullstop("probe", server.url, "--quick", "--levels", "1,2", "--no-control", "--json", "-")
            document = json.loads(result.stdout)
            self.assertEqual(document["schema"], "fullstop.run/1")

    def test_reports_of_runs_that_are_not_there(self):
        self.expect(self.run_fullstop("report", "last", "--store", str(self.folder / "none.sqlite")), 2)
        file = self.folder / "other.json"
        file.write_text('{"schema":"something.else/1"}')
        self.expect(self.run_fullstop("report", str(file)), 2, "something.else")


if __name__ == "__main__":
    unittest.main(verbosity=2)
