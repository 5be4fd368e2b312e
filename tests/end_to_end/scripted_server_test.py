#!/usr/bin/env python3
"""Planted causes through the whole program: real sockets, real time, the store, the documents. The virtual runs (planted_causes_test.cc)
cover every cause at every onset; here one of each kind of end shows that nothing between the socket and the report changes a verdict.
SCRIPTED_SERVER names the server, FULLSTOP the program."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

FASTER = "20"  # the server's 12 ms between tokens become less than one; nothing here is planted by a clock


class Scripted:
    def __init__(self, *words):
        self._command = [os.environ["SCRIPTED_SERVER"], *words]

    def __enter__(self):
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            self.__exit__()
            raise RuntimeError(f"{self._command} said {line!r}")
        self.url = line.split()[-1]
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(20)
        self._process.stdout.close()


def probe(url):
    with tempfile.TemporaryDirectory() as folder:
        document = pathlib.Path(folder) / "run.json"
        result = subprocess.run([os.environ["FULLSTOP"], "probe", url, "--no-control", "--quick", "--levels", "4", "--quiet", "--json", str(document),
                                 "--store", str(pathlib.Path(folder) / "runs.sqlite")], capture_output=True, text=True, timeout=300, check=False)
        if not document.exists():
            raise AssertionError(f"exit {result.returncode}\n{result.stdout}\n{result.stderr}")
        verdict = json.loads(document.read_text())["verdict"]
        print(f"\n  exit {result.returncode}: {verdict['headline']}", flush=True)
        return result.returncode, verdict


class PlantedOnRealSockets(unittest.TestCase):
    def expect(self, scenario, cause, layer, exit_code=1):
        with Scripted("--scenario", scenario, "--from", "4", "--faster", FASTER) as server:
            code, verdict = probe(server.url)
        self.assertEqual((verdict["cause"], verdict["layer"]), (cause, layer), verdict["headline"])
        self.assertEqual(verdict["from_concurrency"], 4)
        self.assertEqual(code, exit_code)

    def test_an_error_in_the_stream(self):
        self.expect("kv_pool_exhausted: llama-server, in-band error for all", "kv_pool_exhausted", "memory")

    def test_an_end_called_stop(self):
        self.expect("unexplained: quiet cuts of a pool that nobody told, for all", "unexplained", "unknown")

    def test_a_reset_in_mid_stream(self):
        self.expect("connection_broken: reset at a random point", "connection_broken", "transport")

    def test_an_end_of_file_inside_a_chunk(self):
        self.expect("connection_broken: end of file inside a chunk", "connection_broken", "transport")

    def test_a_refusal_with_a_status(self):
        self.expect("admission_rejected: 503 at once", "admission_rejected", "runtime")

    def test_a_reason_word_that_says_abort(self):
        self.expect("aborted_by_server: finish reason abort", "aborted_by_server", "runtime")

    def test_nothing_planted(self):
        with Scripted("--faster", FASTER) as server:
            code, verdict = probe(server.url)
        self.assertIn(verdict["value"], ("unaffected", "latency_only", "sampling_variance"), verdict["headline"])
        self.assertEqual((code, verdict["cause"]), (0, None))


if __name__ == "__main__":
    unittest.main(verbosity=2)
