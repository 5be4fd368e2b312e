#!/usr/bin/env python3
"""Four users in a pool for one and a half, on the real model: with eager admission answers are paused, none is cut, and each reads as if its
user had been alone. FULLSTOP names the program, MODEL the file."""

import json
import os
import re
import subprocess
import threading
import unittest
import urllib.request


def ask(url, topic, results):
    body = {"messages": [{"role": "user", "content": f"Write a long story about {topic}."}], "temperature": 0, "seed": 1, "max_tokens": 120}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=240) as answer:
        results[topic] = json.load(answer)


def text_of(answer):
    return answer["choices"][0]["message"]["content"]


def pauses_of(answer):
    return sum(answer["fullstop"]["preemptions"].values())


class SmallPool(unittest.TestCase):
    def test_answers_are_paused_and_end_whole(self):
        command = [os.environ["FULLSTOP"], "serve", "--model", os.environ["MODEL"], "--listen", "127.0.0.1:0", "--kv-layout", "unified", "--kv-tokens", "256",
                   "--max-sequences", "4", "--admission", "eager", "--quiet"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.wait, 60)
        self.addCleanup(server.terminate)
        self.addCleanup(server.stdout.close)
        url = server.stdout.readline().split()[-1]
        results = {}
        users = [threading.Thread(target=ask, args=(url, topic, results)) for topic in ("bread", "rivers", "bees", "a farm")]
        for user in users:
            user.start()
        for user in users:
            user.join()
        self.assertEqual(len(results), 4)
        for topic, answer in results.items():
            facts, usage = answer["fullstop"], answer["usage"]
            with self.subTest(topic=topic):
                self.assertIn(facts["stop"]["cause"], ("natural_end", "token_limit"))
                self.assertTrue(text_of(answer))
                if facts["stop"]["cause"] == "token_limit":
                    self.assertEqual(usage["completion_tokens"], 120)
                self.assertEqual(facts["paused_ms"] > 0, pauses_of(answer) > 0)
        paused = sum(map(pauses_of, results.values()))
        with urllib.request.urlopen(f"{url}/metrics", timeout=10) as metrics:
            counted = sum(map(int, re.findall(r"^fullstop_preemptions_total\{.*\} (\d+)$", metrics.read().decode(), re.MULTILINE)))
        print(f"\n  {paused} pauses, {[answer['usage']['completion_tokens'] for answer in results.values()]} tokens", flush=True)
        self.assertGreaterEqual(paused, 1, "four answers of up to 150 tokens do not fit 256 cells at once")
        self.assertEqual(paused, counted)
        most = max(results, key=lambda topic: pauses_of(results[topic]))
        alone = {}
        ask(url, most, alone)
        self.assertEqual(text_of(results[most]), text_of(alone[most]), "the same text alone, and paused among others")


if __name__ == "__main__":
    unittest.main(verbosity=2)
