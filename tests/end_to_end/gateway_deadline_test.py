#!/usr/bin/env python3
"""A gateway with a total limit of 2 s in front of a real llama-server, probed with one user and with eight: each answer that was
cut says who cut it, at which limit and after how long; the probe names the gateway from outside and clears the server by its control
arm; and what the gateway recorded of each answer is found by the id the probe gave it."""

import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import tempfile
import unittest

from gateway_test import front_of
from llama_server import LlamaServer

LIMIT_MS = 2000
TOKENS = 100  # about 1.5 s for one user here, 6 s for each of eight
TOPICS = ("bread", "rivers", "bees", "a farm", "the moon", "ships")


class TotalDeadline(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            document, store = pathlib.Path(folder) / "run.json", pathlib.Path(folder) / "answers.sqlite"
            prompts = pathlib.Path(folder) / "prompts.jsonl"
            prompts.write_text("".join(json.dumps({"id": topic, "prompt": f"Write a long essay about {topic}."}) + "\n" for topic in TOPICS))
            with LlamaServer("-c", "8192", "-np", "8", "-t", "1") as server, front_of([server.url], "--total", "2s", "--store", store) as front:
                cls.result = subprocess.run(
                    [os.environ["FULLSTOP"], "probe", front.url, "--control", server.url, "--quick", "--budget", "5m", "--levels", "1,8", "--max-tokens", str(TOKENS),
                     "--prompts", prompts, "--store", "none", "--quiet", "--json", document], capture_output=True, text=True, timeout=400, check=False)
                front.process.send_signal(signal.SIGTERM)
                front.process.wait(20)
            print("\n" + cls.result.stdout)
            cls.run_document = json.loads(document.read_text())
            with contextlib.closing(sqlite3.connect(store)) as database:
                cls.recorded = {name: json.loads(facts) for name, facts in database.execute("SELECT id, recorded FROM records")}

    def records(self, arm):
        return [record for record in self.run_document["records"] if record["arm"] == arm]

    def test_the_probe_names_the_gateway_and_clears_the_server(self):
        self.assertEqual(self.result.returncode, 1, self.result.stdout + self.result.stderr)
        verdict = self.run_document["verdict"]
        self.assertEqual((verdict["value"], verdict["cause"], verdict["layer"]), ("policy", "gateway_deadline", "gateway"))
        self.assertEqual([record["id"] for record in self.records("control") if record["shortened"]], [])
        self.assertTrue(all(record["end"]["transport"] == "clean" for record in self.records("control")))

    def test_every_cut_answer_tells_its_limit_and_its_time(self):
        cut = [record for record in self.records("deployed") if record["shortened"]]
        self.assertGreaterEqual(len([record for record in cut if record["concurrency"] == 8]), 2)
        for record in cut:
            self.assertEqual((record["cause"], record["confidence"]), ("gateway_deadline", "proven"), record["id"])
            self.assertEqual(record["deadline"]["gateway_ms"], {"value": LIMIT_MS, "from": "reported", "how": "header fullstop-deadline-ms"})
            self.assertIn("total limit of 2.0 s is over, 2.0 s after the request", record["end"]["error"]["text"])
            self.assertFalse(record["end"]["transport"] == "clean" and record["http_status"] == 200, "a cut stream does not look whole")
            self.assertAlmostEqual(record["elapsed_ms"], LIMIT_MS, delta=500)

    def test_what_the_gateway_recorded_is_found_by_the_probes_ids(self):
        for record in self.records("deployed"):
            self.assertIn(record["id"], self.recorded)
            cause = self.recorded[record["id"]]["fullstop_cause"]
            self.assertEqual(cause == "gateway_deadline", record["cause"] == "gateway_deadline", record["id"])
        self.assertEqual(len(self.recorded), len(self.records("deployed")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
