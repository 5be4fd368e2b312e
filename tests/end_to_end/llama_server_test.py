#!/usr/bin/env python3
"""The main job on a real foreign server: llama-server with a real model, probed as its user would. Each test prints the
verdict that was reached, so that a run of the tests shows what was measured."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from llama_server import LlamaServer

FULLSTOP = os.environ["FULLSTOP"]


def probe(url, *words, folder):
    document = pathlib.Path(folder) / "run.json"
    result = subprocess.run([FULLSTOP, "probe", url, "--no-control", "--json", str(document), "--store", str(pathlib.Path(folder) / "runs.sqlite"), *words],
                            capture_output=True, text=True, timeout=540, check=False)
    if not document.exists():
        raise AssertionError(f"exit {result.returncode}\n{result.stdout}\n{result.stderr}")
    run = json.loads(document.read_text())
    print(f"\n  exit {result.returncode}: {run['verdict']['headline']}")
    for remedy in run["verdict"]["remedies"]:
        print(f"  remedy: {remedy['text']} [{remedy['setting']}]")
    return result, run


def judged_again(folder):
    document = pathlib.Path(folder) / "again.json"
    subprocess.run([FULLSTOP, "report", "last", "--store", str(pathlib.Path(folder) / "runs.sqlite"), "--json", str(document)],
                   capture_output=True, timeout=120, check=False)
    return json.loads(document.read_text())


# Long answers, so that eight of them need more than twice the pool of the test: nobody escapes by being brief.
LONG = ["the history of bread", "how rivers shape valleys", "a voyage around the world", "the life of bees", "building a house", "a year on a farm",
        "the invention of printing", "how cities grow"]


class RealLlamaServer(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.folder = temporary.name
        self.addCleanup(temporary.cleanup)

    def test_a_shared_pool_too_small_is_proven_and_its_cure_holds(self):
        prompts = pathlib.Path(self.folder) / "long.jsonl"
        prompts.write_text("".join(json.dumps({"id": f"long-{i}", "prompt": f"Write a very long and detailed essay of ten paragraphs about {topic}."}) + "\n"
                                   for i, topic in enumerate(LONG)))
        words = ["--prompts", str(prompts), "--max-tokens", "250", "--levels", "1,4,8", "--repeat", "1", "--budget", "150s"]
        with LlamaServer("-c", "1024", "-np", "8", "-kvu") as server:
            result, run = probe(server.url, *words, folder=self.folder)
        verdict = run["verdict"]
        self.assertEqual(result.returncode, 1)
        self.assertEqual(verdict["value"], "serving_defect")
        self.assertEqual((verdict["cause"], verdict["layer"], verdict["confidence"]), ("kv_pool_exhausted", "memory", "proven"))
        self.assertIn(verdict["from_concurrency"], (4, 8))
        self.assertIn("1024", " ".join(e["text"] for e in verdict["evidence"]), "the arithmetic names the pool")
        self.assertEqual(judged_again(self.folder)["verdict"], verdict, "a stored run judged again says the same")
        setting = next(r for r in verdict["remedies"] if re.search(r"-c \d+", r["setting"]))
        cells = re.search(r"-c (\d+)", setting["setting"])[1]
        with LlamaServer("-c", cells, "-np", "8", "-kvu") as server:
            result, run = probe(server.url, *words, folder=self.folder)
        self.assertEqual(result.returncode, 0, f"-c {cells} was said to be enough")

    def test_a_split_window_is_a_setting(self):
        with LlamaServer("-c", "2048", "-np", "8", "--no-kv-unified") as server:
            result, run = probe(server.url, "--max-tokens", "400", "--levels", "1,8", "--repeat", "1", "--budget", "100s", folder=self.folder)
        verdict = run["verdict"]
        self.assertEqual(result.returncode, 1)
        self.assertEqual((verdict["value"], verdict["cause"], verdict["layer"]), ("policy", "context_limit", "settings"))
        self.assertIn("256", " ".join(e["text"] for e in verdict["evidence"]), "P+C equals what the server reports")

    def test_ample_memory_is_only_slower(self):
        """AMPLE_RUNS=5 repeats it: no verdict of luck."""
        for number in range(int(os.environ.get("AMPLE_RUNS", "1"))):
            with self.subTest(run=number), LlamaServer("-c", "8192", "-np", "8", "-kvu") as server:
                result, run = probe(server.url, "--max-tokens", "400", "--levels", "1,8", "--repeat", "1", "--budget", "120s", folder=self.folder)
                self.assertEqual(result.returncode, 0)
                self.assertIn(run["verdict"]["value"], ("latency_only", "unaffected"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
