#!/usr/bin/env python3
"""Bad input of every kind: each gets a message that names the cause and the next step, the exit code of the contract, no
hang, and nothing that was measured is lost. The program under test is named by FULLSTOP."""

import json
import os
import pathlib
import resource
import sqlite3
import subprocess
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
