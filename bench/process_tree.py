"""Runs a command and says what it cost with everything it started: CPU seconds of the whole tree and its peak memory.

A child subreaper adopts what the command leaves behind, so wait4 counts every process once. Children that their parent
never waited for are missing there; the times seen in /proc ten times a second then give the larger figure.
"""

import ctypes
import dataclasses
import os
import pathlib
import signal
import subprocess
import time

PR_SET_CHILD_SUBREAPER = 36
SAMPLE_S = 0.1
LEFTOVER_S = 5  # what outlives its command by this is ended
TICK, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


class Failed(Exception):
    """The command could not do its work; the text says why, and where its output is."""


@dataclasses.dataclass
class Cost:
    cpu_s: float
    peak_mb: float
    wall_s: float
    exit_code: int


def processes():
    """pid -> (parent, own CPU seconds, resident bytes) of every process that can be read."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[int(entry.name)] = (int(fields[1]), (int(fields[11]) + int(fields[12])) / TICK, int(fields[21]) * PAGE)
    return found


def descendants(table, root, without):
    children = {}
    for pid, (parent, _, _) in table.items():
        children.setdefault(parent, []).append(pid)
    found, waiting = [], [root]
    while waiting:
        for pid in children.get(waiting.pop(), []):
            if pid not in without:
                found.append(pid)
                waiting.append(pid)
    return found


class Tree:
    """The processes below this one, except those that were there before: servers under load are not part of the cost."""

    def __init__(self):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._before = set(descendants(processes(), os.getpid(), set()))
        self._seen, self._waited, self.peak_bytes = {}, 0.0, 0

    def sample(self):
        table = processes()
        living = descendants(table, os.getpid(), self._before)
        self._seen.update((pid, table[pid][1]) for pid in living)
        self.peak_bytes = max(self.peak_bytes, sum(table[pid][2] for pid in living))
        return living

    def reap(self, pid):
        """The exit code of pid if it has ended, else None."""
        try:
            ended, status, usage = os.wait4(pid, os.WNOHANG)
        except ChildProcessError:
            return None  # somebody else's child: its own parent waits for it
        if not ended:
            return None
        self._waited += usage.ru_utime + usage.ru_stime  # not ru_maxrss: it begins with the memory of this interpreter
        return os.waitstatus_to_exitcode(status)

    def finish(self):
        """Waits for what was left behind, ends what stays."""
        deadline = time.monotonic() + LEFTOVER_S
        while living := [pid for pid in self.sample() if self.reap(pid) is None]:
            if time.monotonic() > deadline:
                self.end(living, signal.SIGKILL)
            time.sleep(SAMPLE_S)

    @staticmethod
    def end(pids, number):
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def cpu_s(self):
        return max(self._waited, sum(self._seen.values()))


def run(command, log, environment, folder, core=None, timeout_s=1200):
    """Runs the command with its output in log; Failed when it ends with an error or takes too long."""
    tree, started = Tree(), time.monotonic()
    pin = (lambda: os.sched_setaffinity(0, {core})) if core is not None else None
    with open(log, "wb") as output:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=folder, preexec_fn=pin)
    try:
        while (exit_code := tree.reap(child.pid)) is None:
            if time.monotonic() - started > timeout_s:
                raise Failed(f"still running after {timeout_s} s (log: {log})")
            tree.sample()
            time.sleep(SAMPLE_S)
        child.returncode = exit_code
    finally:
        if child.returncode is None:
            tree.end(tree.sample(), signal.SIGTERM)
        tree.finish()
    return Cost(tree.cpu_s(), tree.peak_bytes / 1e6, time.monotonic() - started, exit_code)
