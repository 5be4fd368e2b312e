#!/usr/bin/env python3
"""What does `fullstop gateway` add to each streamed event, beside proxies of the field, on the same load in the same minute?

  bench/gateway.py [--repeat 5] [--seconds 5] [--shapes few,many,burst] [--only NAME,...] [--deps DIR] [--json FILE]

A mock server stamps every event with the moment it is sent, the load subtracts it from the moment of receipt: a one-way delay for each
event, with nothing in between ("direct") and through each relay. Mock and load run on core 0, the relay under test on core 1, all with
real-time priority (SCHED_FIFO), because at normal priority every relay shows the scheduler's tick as its p99. The order turns with each
repeat. An answer that lost an event, its reason, [DONE] or the last chunk counts as bad, and a relay with bad answers is no winner.

  few    4 users, 64 events each, one each 5 ms        many   200 users, 128 events, one each 20 ms
  burst  64 users, 65 events at once, then the next answer: responses a second

CPU is the relay's own time on a core for one event; memory its peak (VmHWM). Ratios are medians over the repeats of ours / nginx in the same
repeat. nginx, haproxy and caddy are Debian's, fetched by name into .deps/gateways when the machine has none."""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True  # nothing but sources in bench/
import debian_programs
import gateway_peers

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHAPES = {  # users, events, gap in µs
    "few": (4, 64, 5000),
    "many": (200, 128, 20000),
    "burst": (64, 65, 0),
}
FIRST_US = 2000  # some proxies lose a response that begins before they have sent the whole request
MOCK_CORE, RELAY_CORE = 0, 1
TARGETS = {"added p50": 1.2, "p99": 1.3, "CPU": 1.5}
TARGET_MIB = 20


def say(text):
    print(f"gateway: {text}", file=sys.stderr, flush=True)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def real_time(core, priority):
    """The words before a command that pin it and give it real-time priority, where this user may."""
    pin = ["taskset", "-c", str(core)] if os.cpu_count() > 1 else []
    allowed = shutil.which("chrt") and subprocess.run(["chrt", "-f", str(priority), "true"], capture_output=True, check=False).returncode == 0
    if not allowed:
        say("SCHED_FIFO is not allowed here: the p99 of every relay shows the scheduler's tick")
    return (["chrt", "-f", str(priority)] if allowed else []) + pin


def program(name):
    path = ROOT / "build" / name
    if not path.exists():
        raise SystemExit(f"gateway: {path} is missing: ./setup --tests && ninja -C build fullstop benchmarks")
    return str(path)


def relays(only, deps):
    makers = {"fullstop": lambda: gateway_peers.Fullstop(program("fullstop")), "nginx": lambda: gateway_peers.Nginx(deps),
              "haproxy": lambda: gateway_peers.Haproxy(deps), "caddy": lambda: gateway_peers.Caddy(deps)}
    found = []
    for name, make in makers.items():
        if only and name not in only:
            continue
        try:
            found.append(make())
        except debian_programs.Missing as missing:
            say(f"{missing}: no row for it")
    return found


class Mock:
    def __init__(self, events, gap_us):
        self.port = free_port()
        self._process = subprocess.Popen([*real_time(MOCK_CORE, 20), program("mock_sse_server"), "--port", str(self.port), "--events", str(events),
                                          "--gap-us", str(gap_us), "--first-us", str(FIRST_US), "--keep-alive", "1"], stdout=subprocess.PIPE)
        self._process.stdout.readline()

    def stop(self):
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(20)
        self._process.stdout.close()


def load(port, shape, seconds):
    users, events, gap_us = SHAPES[shape]
    command = [*real_time(MOCK_CORE, 10), program("sse_load"), "--port", str(port), "--users", str(users), "--seconds", str(seconds), "--events", str(events),
               "--spread-us", str(11 * gap_us)]  # eleven gaps: every user then has a moment of its own within the gap
    return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=True).stdout)


def measure(shape, peers, options, folder):
    """One row for each relay and repeat."""
    users, events, gap_us = SHAPES[shape]
    mock, running, rows = Mock(events, gap_us), [], []
    try:
        for peer in peers:
            prefix = real_time(RELAY_CORE, 15)
            running.append(gateway_peers.Running(peer, folder / shape / peer.name.replace(" ", "-"), free_port(), mock.port, prefix, dict(os.environ)))
            running[-1].wait_until_up()
        for repeat in range(options.repeat):
            order = [None, *running]
            order = order[repeat % len(order):] + order[:repeat % len(order)]
            for relay in reversed(order) if repeat % 2 else order:
                cpu = relay.cpu_us() if relay else 0
                row = load(relay.port if relay else mock.port, shape, options.seconds)
                row |= {"shape": shape, "relay": relay.name if relay else "direct", "repeat": repeat}
                if relay:
                    row |= {"cpu_us_per_event": (relay.cpu_us() - cpu) / max(row["events"], 1), "peak_mib": relay.peak_mib()}
                rows.append(row)
                say(f"{shape} {repeat + 1}/{options.repeat} {row['relay']}: p50 {row['delay_us']['p50']:.0f}, p99 {row['delay_us']['p99']:.0f} µs, bad {row['bad']}")
    finally:
        for relay in running:
            relay.stop()
        mock.stop()
    return rows


# --- Tables ----------------------------------------------------------------------------------------------------------------


def middle(values, digits=0):
    """Median and range."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def figures(rows, name):
    """For each repeat: what is compared."""
    own, direct = [{row["repeat"]: row for row in rows if row["relay"] == each} for each in (name, "direct")]
    out = []
    for repeat in sorted(own):
        row = own[repeat]
        out.append({"added p50": row["delay_us"]["p50"] - direct[repeat]["delay_us"]["p50"], "p50": row["delay_us"]["p50"], "p99": row["delay_us"]["p99"],
                    "first": row["first_us"]["p50"], "rate": row["answers"] / row["seconds"], "events": row["events"] / row["seconds"],
                    "CPU": row.get("cpu_us_per_event", 0), "MiB": row.get("peak_mib", 0), "bad": row["bad"]})
    return out


def table(shape, rows, names):
    users, events, gap_us = SHAPES[shape]
    print(f"\n{shape}: {users} users, {events} events" + (f", one each {gap_us / 1000:g} ms" if gap_us else " at once"))
    print("| relay | first event p50, µs | event p50, µs | added p50, µs | event p99, µs | answers a second | CPU an event, µs | peak MiB | bad |\n|" + "---|" * 9)
    for name in ["direct", *names]:
        each = figures(rows, name)
        column = lambda key, digits=0: middle([figure[key] for figure in each], digits)
        bad = sum(figure["bad"] for figure in each)
        own = "| | |" if name == "direct" else f"| {column('CPU', 1)} | {max(figure['MiB'] for figure in each):.1f} |"
        print(f"| {name} | {column('first')} | {column('p50')} | {'' if name == 'direct' else column('added p50')} | {column('p99')} | {column('rate')} {own} {bad} |")


def verdict(shape, rows):
    """Ours against nginx of the same repeat; True when every target holds."""
    ours, theirs = figures(rows, "fullstop"), figures(rows, "nginx tuned")
    if not ours or not theirs:
        return True
    good = not any(figure["bad"] for figure in ours)
    for key, target in TARGETS.items():
        if shape == "burst" and key != "CPU":
            continue  # in bulk the delay is the queue's length
        ratios = [a[key] / b[key] for a, b in zip(ours, theirs) if b[key] > 0]
        holds = statistics.median(ratios) <= target
        good = good and holds
        print(f"{shape}: {key} {middle(ratios, 2)} of nginx's, target {target}: {'holds' if holds else 'MISSED'}")
    if shape == "burst":
        print(f"{shape}: answers a second {middle([a['rate'] / b['rate'] for a, b in zip(ours, theirs)], 2)} of nginx's")
    peak = max(figure["MiB"] for figure in ours)
    print(f"{shape}: peak memory {peak:.1f} MiB, target {TARGET_MIB}: {'holds' if peak <= TARGET_MIB else 'MISSED'}")
    return good and peak <= TARGET_MIB


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5, help="of load, for each relay, shape and repeat")
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--only", default="", help="relays: fullstop, nginx, haproxy, caddy")
    parser.add_argument("--deps", default="", help="folder for programs that are fetched (.deps/gateways)")
    parser.add_argument("--json", default="", help="also write every row there")
    options = parser.parse_args()
    deps = debian_programs.work_folder(ROOT, options.deps)
    peers = relays([word for word in options.only.split(",") if word], deps)
    rows, good = [], True
    for shape in options.shapes.split(","):
        rows += (found := measure(shape, peers, options, deps / "run"))
        table(shape, found, [peer.name for peer in peers])
        good = verdict(shape, found) and good
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
