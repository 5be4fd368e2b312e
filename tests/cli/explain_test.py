#!/usr/bin/env python3
"""`fullstop explain` from outside: the captures of tests/golden, whose truth stands in their index, and files that nobody can explain."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "schema"))
import validate

FULLSTOP, GOLDEN, SCHEMAS = os.environ["FULLSTOP"], pathlib.Path(os.environ["GOLDEN"]), pathlib.Path(os.environ["SCHEMAS"])
CAPTURES = GOLDEN / "captures"


def explain(*words, text=None):
    return subprocess.run([FULLSTOP, "explain", *map(str, words)], input=text, capture_output=True, timeout=60, check=False)


class Explain(unittest.TestCase):
    def holds(self, document):
        schema = document["schema"].removeprefix("fullstop.").replace("/", "-") + ".schema.json"
        self.assertEqual(list(validate.breaks(json.loads((SCHEMAS / schema).read_text()), document)), [])

    def test_every_capture_has_the_cause_that_its_index_names_and_proven_is_never_wrong(self):
        for case in json.loads((CAPTURES / "index.json").read_text())["cases"]:
            result = explain(*[CAPTURES / file for file in case["files"]], "--json", "-")
            document = json.loads(result.stdout)
            self.holds(document)
            for one in document.get("explanations", [document]):
                self.assertIn(one["cause"], case["cause"], f"{one['file']}: {case['why']}")
            with self.subTest(files=case["files"]):
                wrong = any(one["shortened"] for one in document.get("explanations", [document]))
                self.assertEqual(result.returncode == 1, wrong)

    def test_one_screen_quotes_the_bytes(self):
        result = explain(CAPTURES / "direct_stream_n8_0.raw")
        screen = result.stdout.decode()
        self.assertEqual(result.returncode, 1)
        self.assertLessEqual(len(screen.splitlines()), 24, screen)
        self.assertIn("line 304, byte 22171", screen)
        self.assertIn("Context size has been exceeded", screen)

    def test_standard_input_is_a_file_too(self):
        whole = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{"choices":[{"message":{"content":"Yes."},"finish_reason":"stop"}]}'
        result = explain("-", text=whole)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"WHOLE: natural_end", result.stdout)

    def test_several_answers_of_one_moment_are_judged_together(self):
        result = explain(*sorted(CAPTURES.glob("direct_stream_n8_*.raw")))
        self.assertIn(b"Together", result.stdout)
        self.assertIn(b"within one second of each other", result.stdout)

    def test_a_line_of_text_proves_nothing(self):
        document = json.loads(explain("-", "--json", "-", text=b"hello\n").stdout)
        self.assertEqual((document["cause"], document["confidence"]), ("server_error", "weak"))

    def test_what_cannot_be_read_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            empty, packed, binary = (pathlib.Path(folder) / name for name in ("empty", "packed", "binary"))
            empty.write_bytes(b"")
            packed.write_bytes(gzip.compress(b"data: [DONE]\n\n"))
            binary.write_bytes(bytes(range(256)) * 40)
            for file, code, words in ((empty, 2, ""), (packed, 2, "packed (gzip)"), (pathlib.Path(folder) / "gone", 2, "cannot read")):
                result = explain(file)
                self.assertEqual(result.returncode, code, result.stdout + result.stderr)
                self.assertIn(words, result.stderr.decode())
            self.assertIn(explain(binary).returncode, (1, 2, 3))


if __name__ == "__main__":
    unittest.main(verbosity=2)
