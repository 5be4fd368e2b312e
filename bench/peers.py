#!/usr/bin/env python3
"""What do other load tools cost, and what do they say of a server that cuts answers? Real tools, by name and exact version.

  peers.py cost      client CPU per streamed event of each tool on the same mock load, paced and in bulk, start-up subtracted
  peers.py symptom   a real llama-server whose shared KV pool is too small: what each tool reports, beside our own probe

Each tool is installed on first use into .deps/peers/NAME. CPU seconds and counts hold on a busy machine; wall time does not.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import urllib.request

sys.dont_write_bytecode = True  # nothing but sources in bench/ and tests/
import gguf_tokenizer
import peer_tools
import process_tree
from process_tree import Failed

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPS = ROOT / ".deps"
MODEL = DEPS / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
TOPICS = ["the history of bread", "how rivers shape valleys", "a voyage around the world", "the life of bees", "building a house",
          "a year on a farm", "the invention of printing", "how cities grow"]
PROMPTS = [f"Write a very long and detailed essay of ten paragraphs about {topic}." for topic in TOPICS]
LEVELS, MAX_TOKENS = [1, 2, 4, 8], 400
POOL_TOO_SMALL = ["-c", "1024", "-np", "8", "-kvu"]
ONE_THREAD = ["-t", "1"]  # a second one would wait for the core of the load tool, spinning
STREAMS = len(PROMPTS)
GAP_US = {"paced": 10000, "bulk": 0}
HOW_TO_BUILD = "./setup --tests && ninja -C build benchmarks"
# Text events an answer, in the small and the large run: their difference must cost more than start-up varies (about 0.3 s).
EVENTS = {"paced": (50, 2000), "bulk": (100, 20000)}
# A probe also takes every prompt alone and repeats until its verdict is firm, about 200 answers: shorter ones give as many events.
PROBE_EVENTS = {"paced": (10, 100), "bulk": (100, 2000)}


def say(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


# --- Programs ----------------------------------------------------------------------------------------------------------


def needed(path, how):
    if not path.exists():
        raise Failed(f"{path} is missing: {how}")
    return str(path)


def install(key, tool):
    """The folder of the tool's virtual environment."""
    folder, stamp, log = DEPS / "peers" / key, DEPS / "peers" / key / "installed", DEPS / "peers" / f"{key}.log"
    if stamp.exists() and stamp.read_text().strip() == tool.requirement:
        return folder
    say(f"installing {tool.requirement} into {folder.relative_to(ROOT)} ({tool.size})")
    folder.mkdir(parents=True, exist_ok=True)
    with open(log, "wb") as output:
        for command in ([sys.executable, "-m", "venv", folder], [folder / "bin" / "pip", "install", "-q", "-U", "pip"],
                        [folder / "bin" / "pip", "install", "-q", tool.requirement]):
            if subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode != 0:
                last = (log.read_text(errors="replace").strip().splitlines() or ["no message"])[-1]
                raise Failed(f"installation failed: {last} (log: {log})")
    stamp.write_text(tool.requirement + "\n")
    return folder


def environment(tool, folder):
    """Without proxies, which would stand between client and loopback, and without anything that asks a model hub."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return kept | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HOME": str(folder), "PYTHONWARNINGS": "ignore"} | tool.environment


def run_tool(key, job, core=None):
    tool = peer_tools.EVERY[key]
    venv = install(key, tool)
    log = job.folder / "log.txt"
    command = tool.command(lambda name: str(venv / "bin" / name), job)
    cost = process_tree.run(command, log, environment(tool, job.folder), job.folder, core)
    if cost.exit_code != 0:
        raise Failed(f"exit code {cost.exit_code} (log: {log})")
    return cost


class Mock:
    """bench/mock_sse_server as a context manager."""

    def __init__(self, build, events, gap_us):
        program = needed(build / "mock_sse_server", HOW_TO_BUILD)
        self._command = [program, "--events", str(events), "--gap-us", str(gap_us)] + (["--core", "1"] if spare_core() is not None else [])

    def __enter__(self):
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        self.url = self._process.stdout.readline().split()[-1]
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()

    def sent(self):
        """(complete answers, text events) sent so far."""
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{self.url}/v1/models", timeout=10) as answer:
            counts = json.load(answer)
        return counts["answers"], counts["events"]


def spare_core():
    """The core for the client, with the mock on core 1; None where there is only one."""
    return 0 if {0, 1} <= os.sched_getaffinity(0) else None


def fresh(*parts):
    folder = pathlib.Path(*parts)
    number = 1
    while (taken := folder.with_name(f"{folder.name}-{number}")).exists():
        number += 1
    taken.mkdir(parents=True)
    return taken


def job(url, model, levels, max_tokens, folder):
    tokenizer = gguf_tokenizer.write(needed(MODEL, "./setup"), DEPS / "peers" / "tokenizer")
    return peer_tools.Job(url, model, PROMPTS, levels, max_tokens, tokenizer, folder)


# --- Cost --------------------------------------------------------------------------------------------------------------


def probe_command(build, url, folder, *words):
    prompts = folder / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"id": f"long-{i}", "prompt": prompt}) + "\n" for i, prompt in enumerate(PROMPTS)))
    return [needed(build / "fullstop", "./setup"), "probe", url, "--no-control", "--prompts", str(prompts), "--repeat", "1", "--quiet",
            "--json", str(folder / "run.json"), "--store", str(folder / "runs.sqlite"), *words]


def one_run(key, mode, events, settings):
    """The cost of one run of a tool against a fresh mock, and how many text events the mock sent."""
    folder = fresh(settings.out, "cost", f"{key}-{mode}-{events}")
    with Mock(settings.build, events, GAP_US[mode]) as mock:
        if key == "probe":
            command = probe_command(settings.build, mock.url, folder, "--no-observe", "--levels", str(STREAMS), "--max-tokens", "omit", "--budget", "10m")
            cost = process_tree.run(command, folder / "log.txt", dict(os.environ), folder, spare_core())
            if cost.exit_code not in (0, 1, 3):
                raise Failed(f"exit code {cost.exit_code} (log: {folder / 'log.txt'})")
        else:
            cost = run_tool(key, job(mock.url, "mock-model-1b", [STREAMS], None, folder), spare_core())
        answers, sent = mock.sent()
    if answers < STREAMS or sent != answers * events:
        raise Failed(f"asked for {answers} whole answers with {sent} events, not for {STREAMS} of {events} (folder: {folder})")
    return cost, answers, sent


def per_event(key, mode, settings):
    """CPU microseconds per event as the slope between two sizes, so that start-up is not in it."""
    slopes, starts, peaks = [], [], []
    sizes = (PROBE_EVENTS if key == "probe" else EVENTS)[mode]
    for _ in range(settings.repeat):
        (small, answers, few), (large, as_many, many) = (one_run(key, mode, events, settings) for events in sizes)
        if answers != as_many:
            raise Failed(f"{answers} answers in the small run, {as_many} in the large one: their difference would not be that of events alone")
        slopes.append((large.cpu_s - small.cpu_s) * 1e6 / (many - few))
        starts.append(small.cpu_s - slopes[-1] * few * 1e-6)
        peaks.append(large.peak_mb)
    if min(slopes) <= 0 or max(slopes) > 3 * min(slopes):
        raise Failed(f"{mode}: lost in the variation of start-up: {listed(slopes, '{:.0f}')} µs per event")
    return {"cpu_us_per_event": round(statistics.median(slopes), 2), "cpu_us_per_event_runs": [round(slope, 2) for slope in slopes],
            "startup_cpu_s": round(statistics.median(starts), 3), "peak_rss_mb": round(max(peaks), 1), "events": many}


def client_bench(settings, streams, bulk_events):
    """Our client host and a bare epoll loop, by bench/client_bench: it counts its own CPU, without start-up."""
    folder = fresh(settings.out, "cost", f"client-{streams}")
    command = [needed(settings.build / "client_bench", HOW_TO_BUILD), str(settings.build / "mock_sse_server"), "--streams", str(streams),
               "--gap-ms", str(GAP_US["paced"] // 1000), "--paced-events", "500", "--bulk-events", str(bulk_events)]
    cost = process_tree.run(command, folder / "log.txt", dict(os.environ), folder)
    if cost.exit_code != 0:
        raise Failed(f"client_bench: exit code {cost.exit_code} (log: {folder / 'log.txt'})")
    found = {"floor": {}, "client": {}}
    for line in map(json.loads, (folder / "log.txt").read_text().splitlines()):
        if line["bench"] == "client_floor" or (line["bench"] == "client_cost" and line["clock"] == "kernel"):
            row = {"cpu_us_per_event": line["cpu_us_per_event"], "startup_cpu_s": None, "peak_rss_mb": line.get("peak_rss_mb"), "events": line["events"]}
            found["floor" if line["bench"] == "client_floor" else "client"][line["mode"]] = row
    return found


def client_costs(settings):
    """At all streams, and paced at one: an event that comes alone pays for its own wake-up, with any client."""
    alone = {f"{key}_alone": {"paced": modes["paced"]} for key, modes in client_bench(settings, 1, 100).items()}
    return client_bench(settings, STREAMS, EVENTS["bulk"][1]) | alone


NAMES = {"floor": "bare C++ epoll loop, nothing parsed", "client": "our client and reader", "floor_alone": "bare C++ epoll loop, one stream",
         "client_alone": "our client and reader, one stream", "probe": "`fullstop probe`, whole, half of it one user"}


def title(key):
    if key in NAMES:
        return NAMES[key]
    tool = peer_tools.EVERY[key]
    return f"{tool.name} ({tool.requirement.partition('==')[2]})" if key == "aiohttp" else f"{tool.name} {tool.requirement.partition('==')[2]}"


def measure_costs(settings):
    costs, missing = {}, {}
    if "client" in settings.only:
        say("our client and a bare epoll loop")
        costs |= client_costs(settings)
    for key in [key for key in settings.only if key != "client"]:
        try:
            costs[key] = {}
            say(f"{title(key)}: a first run that does not count (imports are compiled, files come into memory)")
            one_run(key, "bulk", 10, settings)
            for mode in GAP_US:
                say(f"{title(key)}: {mode}")
                costs[key][mode] = per_event(key, mode, settings)
                say(f"{title(key)}: {mode}: {costs[key][mode]['cpu_us_per_event']} µs per event")
        except (Failed, OSError) as failure:
            missing[key] = str(failure)
            say(f"{title(key)}: not measured: {failure}")
    return costs, missing


def ratio(costs, key, mode, base):
    """None where it would mislead: a probe's paced events come half from one user, those of the tools from all streams."""
    ours = costs.get(base, {}).get(mode)
    if not ours or mode not in costs[key] or (mode == "paced" and "probe" in (base, key)) or key.endswith("_alone"):
        return None
    return float(f"{costs[key][mode]['cpu_us_per_event'] / ours['cpu_us_per_event']:.2g}")


def measured_range(measured):
    runs = [f"{slope:.3g}" for slope in sorted(measured.get("cpu_us_per_event_runs", [measured["cpu_us_per_event"]]))]
    return runs[0] if runs[0] == runs[-1] else f"{runs[0]} to {runs[-1]}"


def cost_row(costs, key):
    cells = [title(key)]
    for mode, bases in (("paced", ["client"]), ("bulk", ["client", "probe"])):
        cells.append(measured_range(costs[key][mode]) if mode in costs[key] else "")
        times = [ratio(costs, key, mode, base) for base in bases]
        cells += ["" if value is None else f"{value:g}" for value in times]
    starts = [row["startup_cpu_s"] for row in costs[key].values() if row["startup_cpu_s"] is not None]
    peaks = [costs[key][mode]["peak_rss_mb"] if mode in costs[key] else None for mode in GAP_US]
    return cells + [f"{statistics.median(starts):.2g}" if starts else "", *("" if peak is None else f"{peak:.0f}" for peak in peaks)]


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def cost(settings):
    costs, missing = measure_costs(settings)
    measured = [key for key in costs if costs[key]]
    for key in measured:
        for mode, row in costs[key].items():
            times = {f"times_{base}": ratio(costs, key, mode, base) for base in ("client", "probe")}
            print(json.dumps({"bench": "peer_cost", "tool": key, "name": title(key), "mode": mode, "streams": STREAMS, "gap_us": GAP_US[mode], **row, **times}))
    for key, reason in missing.items():
        print(json.dumps({"bench": "peer_cost", "tool": key, "name": title(key), "not_measured": reason}))
    print()
    table(["client", "CPU µs per event, paced 10 ms", "× our client", "CPU µs per event, bulk", "× our client", "× probe", "start-up CPU s",
           "peak MB, paced", "peak MB, bulk"], [cost_row(costs, key) for key in measured])
    for key, reason in missing.items():
        print(f"\n{title(key)}: not measured: {reason}")
    return 1 if missing else 0


# --- Symptom -----------------------------------------------------------------------------------------------------------


def llama_server():
    """A fresh server for each tool: none sees what another left in the cache."""
    os.environ |= {"LLAMA_SERVER": needed(DEPS / "llama-server" / "llama-server", "./setup --tests"), "MODEL": needed(MODEL, "./setup")}
    sys.path.insert(0, str(ROOT / "tests" / "end_to_end"))
    from llama_server import LlamaServer  # needs the two variables
    return LlamaServer(*POOL_TOO_SMALL, *ONE_THREAD)


def listed(values, layout="{:g}"):
    return ", ".join("none" if value is None else layout.format(value) for value in values)


def tool_row(key, settings):
    folder = fresh(settings.out, "symptom", key)
    install(key, peer_tools.EVERY[key])
    with llama_server() as server:
        work = job(server.url, "SmolLM2-135M-Instruct", LEVELS, MAX_TOKENS, folder)
        cost = run_tool(key, work)
    shown = peer_tools.EVERY[key].shown(work)
    if set(shown) != set(LEVELS):
        raise Failed(f"its files show the levels {sorted(shown)}, not {LEVELS} (folder: {folder})")
    levels = [shown[level] for level in LEVELS]
    return {"failed": [level.failed for level in levels], "output_tokens": [level.output_tokens for level in levels],
            "latency_s": [level.latency_s for level in levels], "exit_code": cost.exit_code, "cpu_s": round(cost.cpu_s, 1),
            "says": "; ".join(dict.fromkeys(error for level in levels for error in level.errors)) or None}


def probe_row(settings):
    folder = fresh(settings.out, "symptom", "probe")
    words = ["--levels", ",".join(map(str, LEVELS)), "--max-tokens", str(MAX_TOKENS), "--temperature", "0", "--seed", "1", "--budget", "30m"]
    with llama_server() as server:
        cost = process_tree.run(probe_command(settings.build, server.url, folder, *words), folder / "log.txt", dict(os.environ), folder)
    if cost.exit_code not in (0, 1, 3):
        raise Failed(f"exit code {cost.exit_code} (log: {folder / 'log.txt'})")
    run = json.loads((folder / "run.json").read_text())
    levels = {level["concurrency"]: level for level in run["arms"][0]["levels"]}
    if set(levels) != set(LEVELS):
        raise Failed(f"its budget left only the levels {sorted(levels)}: {run['experiment']['reduced']}")
    found = [levels[level] for level in LEVELS]
    verdict = run["verdict"]
    says = f"{verdict['value']}: {verdict['cause']} ({verdict['confidence']}), from {verdict['from_concurrency']} users"
    seconds = lambda level: level["elapsed_ms"]["p50"] and level["elapsed_ms"]["p50"] / 1000
    return {"failed": [level["cut"] + level["refused"] + level["failed"] for level in found], "answers": [level["answers"] for level in found],
            "output_tokens": [level["output_tokens"]["mean"] for level in found], "latency_s": [seconds(level) for level in found],
            "exit_code": cost.exit_code, "cpu_s": round(cost.cpu_s, 1), "says": says}


def symptom(settings):
    rows, missing = {}, {}
    name = lambda key: "`fullstop probe`" if key == "probe" else title(key)
    for key in settings.only:
        say(f"{name(key)}: llama-server {' '.join(POOL_TOO_SMALL)} at {listed(LEVELS)} users (2 to 4 minutes)")
        try:
            rows[key] = probe_row(settings) if key == "probe" else tool_row(key, settings)
            print(json.dumps({"bench": "peer_symptom", "tool": key, "name": name(key), "levels": LEVELS, **rows[key]}), flush=True)
        except (Failed, OSError, KeyError) as failure:
            missing[key] = f"{type(failure).__name__}: {failure}" if isinstance(failure, KeyError) else str(failure)
            print(json.dumps({"bench": "peer_symptom", "tool": key, "name": name(key), "not_measured": missing[key]}), flush=True)
            say(f"{name(key)}: not measured: {missing[key]}")
    print()
    users = listed(LEVELS)
    table(["tool", f"failed or cut at {users} users", "mean output tokens", "mean latency, s (probe: median)", "exit code", "CPU s", "what its file says of it"],
          [[name(key), listed(row["failed"]), listed(row["output_tokens"], "{:.0f}"), listed(row["latency_s"], "{:.1f}"), str(row["exit_code"]),
            f"{row['cpu_s']:g}", row["says"] or "nothing"] for key, row in rows.items()])
    for key, reason in missing.items():
        print(f"\n{name(key)}: not measured: {reason}")
    return 1 if missing else 0


# --- Command line ------------------------------------------------------------------------------------------------------


def chosen(known):
    def parse(text):
        keys = text.split(",")
        if unknown := [key for key in keys if key not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(known)}")
        return keys
    return parse


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, epilog=(
        "Needs ./setup --tests and ninja -C build benchmarks. GuideLLM brings torch with CUDA libraries; where a CPU-only index is\n"
        "reachable, PIP_EXTRA_INDEX_URL makes it smaller. Exit code 1: something was not measured; the reason is printed."))
    commands = parser.add_subparsers(dest="command", required=True)
    costs, symptoms = ["client", "probe", *peer_tools.EVERY], ["probe", *peer_tools.LOAD_TOOLS]
    for name, call, known, what in (("cost", cost, costs, "CPU per streamed event"), ("symptom", symptom, symptoms, "what each tool says of cut answers")):
        command = commands.add_parser(name, help=what, description=what)
        command.add_argument("--only", type=chosen(known), default=known, metavar="A,B", help=f"some of {', '.join(known)}")
        command.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="folder with fullstop, client_bench, mock_sse_server")
        command.add_argument("--out", type=pathlib.Path, default=DEPS / "peers" / "runs", help="folder for the tools' own files and logs")
        if name == "cost":
            command.add_argument("--repeat", type=int, default=2, help="pairs of a small and a large run; the median counts (default 2)")
        command.set_defaults(call=call)
    return parser.parse_args()


def main():
    settings = options()
    settings.build, settings.out = settings.build.resolve(), settings.out.resolve()
    started = time.monotonic()
    try:
        return settings.call(settings)
    except Failed as failure:
        say(failure)
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    finally:
        say(f"{time.monotonic() - started:.0f} s; the tools' files are in {settings.out}")


if __name__ == "__main__":
    sys.exit(main())
