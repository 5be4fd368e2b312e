#!/usr/bin/env python3
"""`fullstop simulate` from outside: what it writes is valid and repeatable, what it cannot do it says, and Ctrl-C keeps what was
computed. FULLSTOP names the program, GOLDEN the folder tests/golden, SCHEMAS docs/schemas. `REWRITE=1` writes the golden events anew."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "schema"))
import validate

FULLSTOP, GOLDEN, SCHEMAS = os.environ["FULLSTOP"], pathlib.Path(os.environ["GOLDEN"]), pathlib.Path(os.environ["SCHEMAS"])
COST = GOLDEN / "simulate/cost.json"
SMALL = ["--users", "3", "--kv-tokens", "256", "--requests", "6", "--prompt-tokens", "10..40", "--output-tokens", "5..60", "--max-tokens", "80"]


class Simulate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.folder / "state")}

    def simulate(self, *words, code=0, cost=("--cost", str(COST))):
        result = subprocess.run([FULLSTOP, "simulate", *cost, *words], capture_output=True, text=True, timeout=120, env=self.environment)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def document(self, *words, **kwargs):
        return json.loads(self.simulate(*words, "--json", "-", **kwargs).stdout)

    def holds(self, schema, document):
        self.assertEqual(list(validate.breaks(json.loads((SCHEMAS / schema).read_text()), document)), [])

    def test_documents_hold_against_their_schemas(self):
        self.holds("cost-1.schema.json", json.loads(COST.read_text()))
        for words in (SMALL, [*SMALL[2:], "--burst"], [*SMALL[2:-2], "--rate", "2", "--max-tokens", "omit"], ["--trace", str(GOLDEN / "report/slower.json")],
                      ["--users", "2", "--kv-tokens", "256", "--requests", "3", "--prompt-tokens", "300"], [*SMALL, "--ttft-target", "1"]):
            with self.subTest(words=words):
                self.holds("simulation-1.schema.json", self.document(*words))
        broken = self.document(*SMALL)
        broken["settings"][0]["surprise"] = 1
        self.assertTrue(list(validate.breaks(json.loads((SCHEMAS / "simulation-1.schema.json").read_text()), broken)), "the check itself works")

    def test_the_same_seed_writes_the_same_bytes(self):
        golden = GOLDEN / "simulate/events.jsonl"
        words = [*SMALL, "--admission", "reserve", "--seed", "7"]
        self.simulate(*words, "--events", str(self.folder / "events"))
        written = (self.folder / "events").read_text()
        if os.environ.get("REWRITE"):
            golden.write_text(written)
        self.assertEqual(written, golden.read_text(), f"meant? REWRITE=1 FULLSTOP={FULLSTOP} GOLDEN={GOLDEN} SCHEMAS={SCHEMAS} python3 {__file__}")
        self.assertEqual(self.simulate(*words, "--json", "-").stdout, self.simulate(*words, "--json", "-").stdout)
        self.assertNotEqual(self.simulate(*words[:-1], "8", "--json", "-").stdout, self.simulate(*words, "--json", "-").stdout)
        for line in written.splitlines():
            json.loads(line)

    def test_more_memory_serves_no_worse_and_every_answer_is_whole(self):
        settings = self.document("--users", "8", "--kv-tokens", "512..4096")["settings"]
        self.assertEqual(len(settings), 4 * 3)
        for setting in settings:
            if setting["kv_tokens"] >= 1024:  # smaller ones cannot hold prompt and max_tokens, and say so
                self.assertEqual(setting["whole"], setting["requests"], setting)
            else:
                self.assertEqual(setting["refused"], setting["requests"], setting)
            self.assertEqual(setting["failed"], 0)
        reserve = [setting["tokens_per_s"] for setting in settings if setting["admission"] == "reserve"]
        self.assertEqual(reserve, sorted(reserve))
        self.assertTrue(all(setting["preemptions"] == {"swap": 0, "recompute": 0} for setting in settings if setting["admission"] == "reserve"))

    def test_the_table_says_whose_times_they_are_and_what_would_do(self):
        said = self.simulate("--users", "1..4", "--kv-tokens", "1024..4096").stdout
        self.assertIn("would do", said)
        self.assertIn(f"Times: from {COST}", " ".join(said.split()))
        self.assertLessEqual(max(map(len, said.splitlines())), 80)
        reference = " ".join(self.simulate(*SMALL, cost=()).stdout.split())
        self.assertIn("a reference, not your machine", reference)
        self.assertIn("No setting of this sweep would do", " ".join(self.simulate(*SMALL, "--itl-target", "1").stdout.split()))

    def test_traces(self):
        lines = self.folder / "trace.jsonl"
        lines.write_text('{"at_ms": 0, "prompt_tokens": 20, "output_tokens": 30}\n\n{"at_ms": 500.5, "prompt_tokens": 10, "output_tokens": 50, "max_tokens": 7}\n')
        setting = self.document("--trace", str(lines), "--kv-tokens", "256", "--admission", "reserve")["settings"][0]
        self.assertEqual((setting["whole"], setting["output_tokens"], setting["users"]), (2, 37, None))
        setting = self.document("--trace", str(lines), "--kv-tokens", "256", "--admission", "reserve", "--users", "1")["settings"][0]
        self.assertEqual((setting["whole"], setting["users"]), (2, 1))
        # 8 prompts of 100 tokens that have 96 in common fit a pool that 8 different ones do not; the trace says which they are.
        longest = {}
        for shared in (0, 96):
            lines.write_text("".join(f'{{"at_ms": 0, "prompt_tokens": 100, "output_tokens": 30, "max_tokens": 20, "shared_tokens": {shared}}}\n' for _ in range(8)))
            longest[shared] = self.document("--trace", str(lines), "--kv-tokens", "512", "--admission", "reserve")["settings"][0]["ttft_ms"]["p99"]
        self.assertLess(2 * longest[96], longest[0])
        run = json.loads((GOLDEN / "report/slower.json").read_text())
        asked = sum(1 for record in run["records"] if record["arm"] == "deployed" and record["prompt_tokens"]["value"])
        document = self.document("--trace", str(GOLDEN / "report/slower.json"), "--kv-tokens", "4096", "--admission", "eager")
        self.assertEqual(document["settings"][0]["requests"], asked)
        self.assertIn("answer", " ".join(self.document("--trace", str(GOLDEN / "report/defect.json"), "--kv-tokens", "4096")["notes"]))

    def test_bad_input_names_the_place(self):
        trace = self.folder / "trace.jsonl"
        for text, *words in [('{"at_ms": 0, "prompt_tokens": 1}\n', "line 1", "output_tokens"), ('\n{"at_ms": 0, "prompt_tokens": 1, "output_tokens": 1}\nx\n', "line 3"),
                             ('{"at_ms": -1, "prompt_tokens": 1, "output_tokens": 1}', "line 1", "at_ms"), ("", "trace"), ('{"schema": "fullstop.run/1"', "run document"),
                             ('{"at_ms": 0, "prompt_tokens": 0, "output_tokens": 1}', "prompt_tokens"), ('[]', "first line"),
                             ('{"at_ms": 0, "prompt_tokens": 5, "output_tokens": 1, "shared_tokens": 6}', "shared_tokens", "0 to 5"),
                             ('{"schema": "fullstop.run/2"}', "fullstop.run/1")]:
            with self.subTest(text=text):
                trace.write_text(text)
                said = self.simulate("--trace", str(trace), code=2).stderr
                for word in words:
                    self.assertIn(word, said)
        for words in [("--users", "0"), ("--users", "1..x"), ("--kv-tokens", "100"), ("--admission", "lazy"), ("--rate", "0"), ("--rate", "nan"), ("--requests", "0"),
                      ("--prompt-tokens", "0"), ("--output-tokens", "9..3"), ("--max-tokens", "many"), ("--max-sequences", "0"), ("--max-queue", "-1"),
                      ("--seed", "-1"), ("--kv-layout", "heap"), ("--itl-target", "0"), ("--json", "/nowhere/at/all.json"), ("--trace", "/nowhere")]:
            with self.subTest(words=words):
                self.assertIn("/nowhere" if words[0] == "--trace" else words[0], self.simulate(*words, code=2).stderr)
        self.assertIn("exclude", self.simulate("--users", "2", "--burst", code=2).stderr)
        self.assertIn("streams", self.simulate("--kv-layout", "streams", "--kv-tokens", "1024", code=2, cost=()).stderr)
        self.assertIn("--calibrate", self.simulate("--calibrate", "--users", "8", code=2, cost=()).stderr)
        self.assertIn("--shared-tokens", self.simulate("--shared-tokens", "-1", code=2).stderr)
        (self.folder / "cost.json").write_text("{}")
        self.assertIn("fullstop.cost/1", self.simulate(*SMALL, code=2, cost=("--cost", str(self.folder / "cost.json"))).stderr)
        self.assertIn("unified layout", self.simulate("--kv-layout", "streams", "--kv-tokens", "8192", code=2).stderr)

    def test_ctrl_c_keeps_what_was_computed(self):
        file = self.folder / "out.json"
        program = subprocess.Popen([FULLSTOP, "simulate", "--cost", str(COST), "--users", "64", "--kv-tokens", "1024..1000000", "--requests", "200000", "--json", str(file)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)
        time.sleep(3)
        program.send_signal(signal.SIGINT)
        out, _ = program.communicate(timeout=60)
        self.assertEqual(program.returncode, 130)
        self.assertIn("Interrupted", out)
        document = json.loads(file.read_text())
        self.holds("simulation-1.schema.json", document)
        self.assertTrue(document["interrupted"])
        self.assertFalse(document["settings"][-1]["finished"])
        self.assertGreater(document["settings"][-1]["requests"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
