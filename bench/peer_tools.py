"""The load tools we compare with: how each is installed, run against a URL, and what its own export file shows.

Every tool gets the same prompts, one request each, the same sampling settings, one worker where it can be told so, and the
leanest settings it offers: no warm-up, no scraping, no terminal interface. Figures are read from its files, never guessed.
"""

import dataclasses
import json
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Job:
    """One run of a tool. levels: numbers of users, one after the other; max_tokens None: as many as the server sends."""

    url: str
    model: str
    prompts: list
    levels: list
    max_tokens: int | None
    tokenizer: pathlib.Path
    folder: pathlib.Path

    def sampling(self):
        return {"temperature": 0, "seed": 1} | ({"max_tokens": self.max_tokens} if self.max_tokens else {})

    def write(self, name, lines):
        path = self.folder / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return str(path)


@dataclasses.dataclass
class Shown:
    """What a tool shows for one level; None where it shows nothing."""

    failed: int | None
    output_tokens: float | None
    latency_s: float | None
    errors: list  # what its file says of errors, each text once


class AIPerf:
    name, requirement, size = "AIPerf", "aiperf==0.13.0", "1.2 GB, about 2 minutes"
    environment = {"HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": ""}  # offline it takes no folder; with a folder it asks nobody

    def command(self, program, job):
        data = job.write("prompts.jsonl", [{"text": prompt} for prompt in job.prompts])
        return [program("aiperf"), "profile", "--model", job.model, "--endpoint-type", "chat", "--streaming", "--url", job.url,
                "--concurrency", ",".join(map(str, job.levels)), "--request-count", str(len(job.prompts)), "--input-file", data,
                "--custom-dataset-type", "single_turn", "--dataset-sampling-strategy", "sequential", "--extra-inputs", json.dumps(job.sampling()),
                "--tokenizer", str(job.tokenizer), *([] if job.max_tokens else ["--use-server-token-count"]), "--no-server-metrics",
                "--no-gpu-telemetry", "--workers-max", "1", "--record-processors", "1", "--ui", "none", "--output-artifact-dir", str(job.folder / "out")]

    def shown(self, job):
        levels = {}
        for path in (job.folder / "out").rglob("profile_export_aiperf.json"):
            export = json.loads(path.read_text())
            mean = lambda name: export.get(name, {}).get("avg")
            failed = mean("error_request_count")
            if failed is None and mean("request_error_rate") == 0:
                failed = 0
            latency = mean("request_latency")
            levels[self._level(path, job)] = Shown(failed, mean("output_sequence_length"), latency and latency / 1000,
                                                     [json.dumps(error) for error in export.get("error_summary", [])])
        return levels

    @staticmethod
    def _level(path, job):
        found = re.search(r"concurrency_(\d+)", str(path))
        return int(found[1]) if found else job.levels[0]


class GuideLLM:
    name, requirement, size = "GuideLLM", "guidellm[recommended]==0.8.1", "6 GB with CUDA libraries, several minutes"
    environment = {"GUIDELLM__MAX_WORKER_PROCESSES": "1"}

    def command(self, program, job):
        data = job.write("prompts.jsonl", [{"prompt": prompt} for prompt in job.prompts])
        backend = {"kind": "openai_http", "target": job.url, "model": job.model, "extras": {"body": job.sampling()}}
        spec = {"backend": backend, "profile": {"kind": "concurrent", "streams": job.levels}, "data": [{"kind": "json_file", "path": data}],
                "constraints": [{"kind": "max_requests", "count": len(job.prompts)}],
                "tokenizer": {"kind": "huggingface_auto", "model": str(job.tokenizer)},
                "outputs": [{"kind": "json", "path": str(job.folder / "benchmarks.json")}]}
        scenario = job.folder / "scenario.json"
        scenario.write_text(json.dumps({"spec": spec}))
        return [program("guidellm"), "run", "--config", str(scenario), "--disable-console-interactive"]

    def shown(self, job):
        levels = {}
        for benchmark in json.loads((job.folder / "benchmarks.json").read_text())["benchmarks"]:
            metrics = benchmark["metrics"]
            mean = lambda name: metrics[name]["successful"]["mean"]
            level = benchmark["config"]["strategy"]["streams"]
            errors = {str(request["info"]["error"]) for request in benchmark["requests"]["errored"]}
            levels[level] = Shown(metrics["request_totals"]["errored"], mean("output_token_count"), mean("request_latency"), sorted(errors))
        return levels


class Evalscope:
    name, requirement, size = "evalscope", "evalscope[perf]==1.14.1", "1.2 GB, about 3 minutes"
    environment = {}

    def command(self, program, job):
        data = job.write("prompts.txt", [{"messages": [{"role": "user", "content": prompt}], **job.sampling()} for prompt in job.prompts])
        count = [str(len(job.prompts))] * len(job.levels)
        return [program("evalscope"), "perf", "--api", "openai", "--url", f"{job.url}/v1/chat/completions", "--model", job.model, "--parallel",
                *map(str, job.levels), "--number", *count, "--dataset", "line_by_line", "--dataset-path", data, "--max-tokens", str(job.max_tokens or 100000),
                "--tokenizer-path", str(job.tokenizer), "--seed", "1", "--stream", "--no-test-connection", "--sleep-interval", "1",
                "--outputs-dir", str(job.folder / "out")]

    def shown(self, job):
        levels = {}
        for path in (job.folder / "out").rglob("benchmark_summary.json"):
            export = json.loads(path.read_text())
            # Its database has no column for the error, only pickled answers.
            levels[export["Concurrency"]] = Shown(export["Failed Requests"], export.get("Avg Output Tokens"), export.get("Avg Latency (s)"), [])
        return levels


class AiohttpLoop:
    """Not a tool: the loop that most of them are built around, without anything else."""

    name, requirement, size = "bare aiohttp loop", "aiohttp==3.14.3", "20 MB, seconds"
    environment = {}

    def command(self, program, job):
        return [program("python"), str(HERE / "aiohttp_loop.py"), f"{job.url}/v1/chat/completions", str(job.levels[0])]


LOAD_TOOLS = {"guidellm": GuideLLM(), "aiperf": AIPerf(), "evalscope": Evalscope()}
EVERY = LOAD_TOOLS | {"aiohttp": AiohttpLoop()}
