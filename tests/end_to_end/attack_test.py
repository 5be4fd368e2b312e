#!/usr/bin/env python3
"""Everything that an attacker is known to send, in a loop, beside four honest users: on `fullstop serve` with the small model, and on
`fullstop gateway` in front of it and of servers that lie. The honest answers stay whole, the same as in quiet, and go on; memory stays
flat; /health answers; nothing goes upstream that the configuration forbids. FULLSTOP names the program, MODEL the file, ATTACK_SECONDS
how long each side is attacked (20; the long form is 600). Attackers are a process of their own (attack_load.py), so that their work
does not delay the honest users' clocks."""

import contextlib
import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
from attack_load import ROUND, Liar

FULLSTOP, MODEL = os.environ["FULLSTOP"], os.environ["MODEL"]
SECONDS = float(os.environ.get("ATTACK_SECONDS", "20"))
SANITIZED = bool(os.environ.get("SANITIZED"))  # a sanitizer's memory and time are not the program's
USERS = 4
LONGEST_GAP_S = 1.0  # beyond the quiet one, without the time in which the program got no processor
PEAK_MIB = 400       # above the quiet program: its budget for what others have it hold, and what reading takes
GROWTH_MIB = 32      # of the peaks behind the first rounds
MAX_OUTPUT = 200


class Program:
    def __init__(self, *words):
        self._errors = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen([FULLSTOP, *words, "--listen", "127.0.0.1:0", "--quiet"], stdout=subprocess.PIPE, stderr=self._errors, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            raise RuntimeError(f"{words} said {line!r} {self.said()}")
        self.port = int(line.rsplit(":", 1)[1])

    def said(self):
        self._errors.seek(0)
        return self._errors.read()[-2000:]

    def memory_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)
        self.process.stdout.close()
        self._errors.close()


def serve():
    return Program("serve", "--model", MODEL, "--threads", "1", "--max-sequences", "6", "--kv-tokens", "6144")


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


class User(threading.Thread):
    """Asks the same question again and again, and notes every answer that is not what it was in quiet."""

    def __init__(self, port, model, number, now=lambda: "quiet"):
        super().__init__(daemon=True)
        self.now, self.gaps = now, []  # what the attackers are at; the longest gaps of each answer
        self.question = ["Name three rivers.", "Count to ten.", "What is a cat?", "Tell me about the sea."][number % 4]
        self.port, self.model, self.number = port, model, number
        self.text, self.until, self.wrong, self.answers, self.gap, self.first = None, 0.0, [], 0, 0.0, 0.0

    def ask(self):
        """The text of one whole answer, its longest gap between tokens, and the first one's time: who comes may have to wait for a place."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        text, done, gap, first, last = "", False, 0.0, None, time.monotonic()
        try:
            body = {"model": self.model, "messages": [{"role": "user", "content": self.question}], "stream": True, "temperature": 0, "max_tokens": 24}
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            response = connection.getresponse()
            if response.status != 200:
                raise RuntimeError(f"{response.status} {response.read()[:300]!r}")
            for line in response:  # ends with IncompleteRead where the last chunk is missing
                if not line.startswith(b"data: "):
                    continue
                now = time.monotonic()
                if first is None:
                    first = now - last
                elif now - last > gap:
                    gap = now - last
                    self.gaps.append((last, now, self.now()))
                last = now
                if line.startswith(b"data: [DONE]"):
                    done = True
                    continue
                event = json.loads(line[6:])
                if "error" in event:
                    raise RuntimeError(f"error in the stream: {event['error']['message'][:300]}")
                for choice in event["choices"]:
                    text += choice["delta"].get("content") or ""
        finally:
            connection.close()
        if not done:
            raise RuntimeError("no [DONE]")
        return text, gap, first

    def run(self):
        while time.monotonic() < self.until:
            began = time.monotonic()
            try:
                text, gap, first = self.ask()
            except (OSError, RuntimeError, ValueError, http.client.HTTPException) as trouble:
                self.wrong.append(f"user {self.number} at {self.now()}, after {time.monotonic() - began:.1f} s: {type(trouble).__name__} {trouble}")
                time.sleep(0.2)
                continue
            self.answers += 1
            self.first = max(self.first, first)
            self.gap = max(self.gap, gap)
            if self.text is None:
                self.text = text
            elif text != self.text:
                self.wrong.append(f"user {self.number} at {self.now()}: {text!r} is not {self.text!r}")


class Starvation(threading.Thread):
    """How long threads of the programs stood ready and got no processor: on a busy machine, and beside their attackers, nobody is faster."""

    def __init__(self, *pids):
        super().__init__(daemon=True)
        self._pids, self._over, self._marks = pids, threading.Event(), [(time.monotonic(), 0.0)]

    def run(self):
        while not self._over.wait(0.02):
            self._marks.append((time.monotonic(), self._waited()))

    def _waited(self):
        total = 0
        for pid in self._pids:
            for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
                with contextlib.suppress(OSError, IndexError):
                    total += int(task.read_text(encoding="ascii").split()[1])
        return total / 1e9

    def stop(self):
        self._over.set()
        self.join()

    def between(self, begin, end):
        """Seconds; what is asked for lies between marks, so those around it count."""
        before = [waited for at, waited in self._marks if at <= begin][-1:]
        behind = [waited for at, waited in self._marks if at >= end][:1] or [self._marks[-1][1]]
        return max(0.0, behind[0] - before[0]) if before else 0.0


def together(users, seconds, now=lambda: "quiet"):
    """The same users, for so long."""
    fresh = []
    for user in users:
        each = User(user.port, user.model, user.number, now)
        each.text, each.until = user.text, time.monotonic() + seconds
        each.start()
        fresh.append(each)
    return fresh


class Attack(unittest.TestCase):
    maxDiff = None

    def attacked(self, side, program, port, model, *words, behind=()):
        """`program` under attack for SECONDS, beside honest users of the port."""
        quiet = [User(port, model, i) for i in range(USERS)]
        for seconds in (1, 4):  # the first answers warm the program up
            quiet = together(quiet, seconds)
            for user in quiet:
                user.join(120)
                self.assertEqual(user.wrong, [], f"{side}: not even in quiet")
        quiet_gap = max(user.gap for user in quiet)
        pids = [program.process.pid, *behind]
        before = program.memory_mib()
        starved = Starvation(*pids)
        starved.start()
        rounds = []
        users = together(quiet, SECONDS, lambda: (rounds or ["the beginning"])[-1])
        load = subprocess.Popen([sys.executable, str(pathlib.Path(__file__).with_name("attack_load.py")), side, str(port), str(SECONDS), model, *map(str, words)],
                                stdout=subprocess.PIPE, text=True)
        memory, health, slowest, during = [], [], 0.0, []
        reader = threading.Thread(target=lambda: rounds.extend(line.strip() for line in load.stdout), daemon=True)
        reader.start()
        until = time.monotonic() + SECONDS
        marks = []
        while time.monotonic() < until and program.process.poll() is None:
            began = time.monotonic()
            try:
                status = get(port, "/health")[0]
            except (OSError, http.client.HTTPException) as trouble:
                status = repr(trouble)
            took = time.monotonic() - began
            took -= starved.between(began, time.monotonic())
            if took > slowest:
                slowest, during = took, rounds[-1:]
            if status != 200:
                health.append(status)
            if program.process.poll() is None:
                memory.append(program.memory_mib())
                marks.append(rounds.count(ROUND))
            time.sleep(0.25)
        load.terminate()
        load.wait(20)
        reader.join(10)
        load.stdout.close()
        ended = program.process.poll()
        for user in users:
            user.join(120)
        starved.stop()
        gap, gap_at = max(((end - begin - starved.between(begin, end), at) for user in users for begin, end, at in user.gaps), default=(0.0, "nothing"))
        answers = sum(user.answers for user in users)
        wrong = [words for user in users for words in user.wrong]
        # A round's own bodies are held for a moment, so peaks are compared: those of the rounds with each other.
        done = rounds.count(ROUND)
        peaks = [max((mib for mib, mark in zip(memory, marks) if mark == i), default=0) for i in range(done)]
        warm = max(peaks[: max(1, done // 2)], default=0)
        figures = (f"{side}: {done} rounds of attacks, {answers} honest answers, {len(wrong)} wrong; longest gap {gap:.2f} s at {gap_at} (quiet {quiet_gap:.2f} s, "
                   f"as the clock shows it {max(user.gap for user in users):.2f} s), first token at most {max(user.first for user in users):.2f} s; /health at most {slowest:.2f} s {during}; memory {before:.0f} MiB in quiet, at most {max(memory):.0f} MiB, "
                   f"by rounds {[round(peak) for peak in peaks]}")
        print(figures, flush=True)
        self.assertIsNone(ended, f"the process ended with {ended} at {rounds[-1:]}: {program.said()}")
        self.assertEqual(wrong[:5], [], figures)
        self.assertEqual(health[:5], [], figures)
        self.assertGreater(answers, 0, figures)
        self.assertGreater(len(rounds), 5, f"{figures}; the attacks themselves failed")
        if SANITIZED:
            return
        allowed = quiet_gap + LONGEST_GAP_S
        self.assertLessEqual(gap, allowed, figures)
        self.assertLessEqual(slowest, allowed, figures)
        self.assertLessEqual(max(memory), before + PEAK_MIB, figures)
        if done > 1:
            self.assertLessEqual(max(peaks), warm + GROWTH_MIB, figures)

    def test_serve(self):
        with serve() as server:
            model = json.loads(get(server.port, "/v1/models")[1])["data"][0]["id"]
            self.attacked("serve", server, server.port, model)

    def test_gateway(self):
        with serve() as server, Liar() as first, Liar() as second, Liar(tells=False) as silent, tempfile.TemporaryDirectory() as room:
            model = json.loads(get(server.port, "/v1/models")[1])["data"][0]["id"]
            config = pathlib.Path(room) / "gateway.toml"
            config.write_text(f'continuation = true\nheartbeat = "1s"\n[output]\nmax_tokens = {MAX_OUTPUT}\n[deadlines]\nidle = "30s"\n'
                              f'[[upstream]]\nurl = "http://127.0.0.1:{server.port}"\nmodels = ["{model}"]\n'
                              f'[[upstream]]\nurl = "{first.url}"\nmodels = ["liar"]\n[[upstream]]\nurl = "{second.url}"\nmodels = ["liar"]\n'
                              f'[[upstream]]\nurl = "{silent.url}"\nmodels = ["silent"]\nlearn = false\n', encoding="utf-8")
            with Program("gateway", "--config", str(config)) as front:
                self.attacked("gateway", front, front.port, model, front.process.pid, behind=[server.process.pid])
            for liar in (first, second, silent):
                self.assertEqual([body for body in liar.asked if not within(body)][:3], [], "asked for more than [output] max_tokens")


def within(body):
    """As the last of the servers would read it: of a name that stands twice the last one counts."""
    try:
        read = json.loads(body)
    except ValueError:
        return True
    if not isinstance(read, dict):
        return True
    limits = [read.get(name) for name in ("max_tokens", "max_completion_tokens", "n_predict", "max_output_tokens")]
    return all(not isinstance(limit, (int, float)) or 0 <= limit <= MAX_OUTPUT for limit in limits)


if __name__ == "__main__":
    unittest.main(verbosity=2)
