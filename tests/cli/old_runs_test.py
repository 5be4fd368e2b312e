#!/usr/bin/env python3
"""Runs that an earlier version wrote, in its store and as a document, from before verdicts had `load`: they are still read, and what is
stored is judged again by today's rules."""

import gzip
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

OLD = pathlib.Path(__file__).parent.parent / "golden" / "old_runs"


def report(*words):
    return subprocess.run([os.environ["FULLSTOP"], "report", *words], capture_output=True, text=True, timeout=60, check=False)


class OldRuns(unittest.TestCase):
    def test_a_stored_run_is_judged_again(self):
        with tempfile.TemporaryDirectory() as folder:
            store = pathlib.Path(folder) / "runs.sqlite"
            store.write_bytes(gzip.decompress((OLD / "store_0_1.sqlite.gz").read_bytes()))
            document = pathlib.Path(folder) / "run.json"
            result = report("last", "--store", str(store), "--json", str(document))
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("Context size has been exceeded", result.stdout)
            verdict = json.loads(document.read_text())["verdict"]
            self.assertEqual((verdict["cause"], verdict["load"]["value"]), ("kv_pool_exhausted", "proven"))

    def test_a_document_keeps_its_own_verdict(self):
        result = report(str(OLD / "document_0_1.json"))
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("2 of 2 answers were lost at 2 users", result.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
