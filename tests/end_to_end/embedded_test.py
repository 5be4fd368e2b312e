#!/usr/bin/env python3
"""`fullstop probe` without a URL: the embedded engine with its real model, from the first line of the terminal to every
document; then a probe that is interrupted and one that is killed, and what is left of their answers."""

import csv
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree

FULLSTOP = os.environ["FULLSTOP"]


class Embedded(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(temporary.name)
        self.store = self.folder / "runs.sqlite"
        self.addCleanup(temporary.cleanup)

    def test_a_quick_probe_ends_with_a_verdict_and_every_document(self):
        files = {name: self.folder / f"run.{name}" for name in ("json", "csv", "markdown", "junit")}
        words = [word for name, file in files.items() for word in (f"--{name}", str(file))]
        captures = self.folder / "captures"
        result = subprocess.run([FULLSTOP, "probe", "--quick", "--store", str(self.store), "--captures", str(captures), *words],
                                capture_output=True, text=True, timeout=600)
        print("\n" + result.stdout)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        run = json.loads(files["json"].read_text())
        self.assertIn(run["verdict"]["value"], ("latency_only", "unaffected"))
        self.assertEqual(run["target"]["server"]["name"], "fullstop")
        for record in run["records"]:
            self.assertEqual(record["end"]["transport"], "clean")
            self.assertTrue(record["end"]["terminator"])
            self.assertIn(record["cause"], ("natural_end", "token_limit"))
            self.assertEqual(record["output_tokens"]["from"], "reported")
        texts = {}
        for record in run["records"]:
            texts.setdefault((record["prompt"], record["seed"]), set()).add(record["text_sha256"])
        self.assertEqual([key for key, different in texts.items() if len(different) > 1], [], "one text for each prompt and seed, at any load")
        self.assertEqual(len(list(captures.iterdir())), len(run["records"]))
        with files["csv"].open(newline="") as table:
            self.assertEqual(len(list(csv.DictReader(table))), len(run["records"]))
        self.assertTrue(xml.etree.ElementTree.parse(files["junit"]).getroot().tag.startswith("testsuite"))
        self.assertIn("|", files["markdown"].read_text())
        self.assertTrue(all(len(line) <= 80 for line in result.stdout.splitlines()), "the terminal report fits 80 columns")

    def stored_answers(self):
        with sqlite3.connect(self.store) as database:
            return database.execute("select count(*) from records").fetchone()[0]

    def wait_for_answers(self, process, at_least):
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and process.poll() is None:
            if self.store.exists():
                try:
                    if self.stored_answers() >= at_least:
                        return
                except sqlite3.Error:
                    pass  # not created yet
            time.sleep(0.2)
        self.fail(f"no {at_least} answers were stored; exit {process.poll()}")

    def start(self):
        return subprocess.Popen([FULLSTOP, "probe", "--levels", "1,2", "--store", str(self.store)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_ctrl_c_reports_and_keeps_what_was_measured(self):
        process = self.start()
        self.wait_for_answers(process, 3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertIn("interrupted", (out + err).lower())
        self.assertGreaterEqual(self.stored_answers(), 3)

    def test_a_kill_loses_at_most_the_answers_in_flight(self):
        process = self.start()
        self.wait_for_answers(process, 3)
        process.kill()
        process.communicate(timeout=60)
        self.assertGreaterEqual(self.stored_answers(), 3)
        again = subprocess.run([FULLSTOP, "report", "last", "--store", str(self.store)], capture_output=True, text=True, timeout=60)
        self.assertIn("interrupted", again.stdout.lower(), again.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
