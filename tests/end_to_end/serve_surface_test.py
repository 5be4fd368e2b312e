#!/usr/bin/env python3
"""What a client of `fullstop serve` meets, on the real program and the small model: every page and parameter of the contract,
what is said about bad requests, clients that do not read, an end in mid-stream, and what keeps the program from starting.
FULLSTOP names the program, MODEL the file."""

import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import jsonschema

FULLSTOP, MODEL = os.environ["FULLSTOP"], os.environ["MODEL"]
KEY = "surface-key-1"
QUESTION = [{"role": "user", "content": "Name three rivers."}]


class Server:
    """One `fullstop serve` on a free port."""

    def __init__(self, *words):
        self.process = subprocess.Popen([FULLSTOP, "serve", "--model", MODEL, "--listen", "127.0.0.1:0", "--quiet", *words], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), line + self.process.stderr.read()
        self.port = int(line.rsplit(":", 1)[1])

    def ask(self, method, path, body=None, key=KEY, headers=None):
        """Status, headers (lower-case names) and body; a body without its last chunk ends with CUT."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {**({"Authorization": f"Bearer {key}"} if key else {}), **(headers or {})})
        response = connection.getresponse()
        try:
            text = response.read().decode()
        except http.client.IncompleteRead as cut:
            text = cut.partial.decode() + "\n\nCUT"
        connection.close()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, text

    def chat(self, more=None, **kwargs):
        return self.ask("POST", "/v1/chat/completions", {"messages": QUESTION, "max_tokens": 8, "temperature": 0, **(more or {})}, **kwargs)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self):
        said = self.process.communicate(timeout=30)[1]
        return self.process.returncode, said


def form(schema):
    return {"type": "json_schema", "json_schema": {"name": "form", "strict": True, "schema": schema}}


def events(text):
    return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: {")]


class Surface(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        (cls.folder / "keys").write_text(f"# for this test\nsurface:{KEY}\n")
        (cls.folder / "keys").chmod(0o600)  # or it is warned of
        (cls.folder / "serve.toml").write_text(f'api-key-file = "{cls.folder}/keys"\nmax-sequences = 2\nkv-tokens = 1024\nmax-queue = 2\nthreads = 1\nkv-layout = "streams"\ngpu-layers = "0"\nttft-target = "1m"\nslo-policy = "reject_early"\n')
        cls.server = Server("--config", str(cls.folder / "serve.toml"))

    @classmethod
    def tearDownClass(cls):
        code, said = cls.server.stop()
        shutil.rmtree(cls.folder)
        assert (code, said) == (0, ""), (code, said)
        assert KEY not in said

    def error(self, answer, status, *words):
        got, headers, text = answer
        self.assertEqual(got, status, text)
        error = json.loads(text)["error"]
        self.assertEqual({"message", "type", "code"} - set(error), set())
        for word in words:
            self.assertIn(word, error["message"] + " " + str(error.get("param")))
        self.assertTrue(headers["x-request-id"])
        return error

    # --- pages --------------------------------------------------------------------------------------------------------
    def test_pages_and_keys(self):
        self.assertEqual(self.server.ask("GET", "/health", key=None)[0], 200)
        for path in ["/v1/models", "/metrics", "/fullstop/status"]:
            for key in [None, "wrong"]:
                answer = self.server.ask("GET", path, key=key)
                self.error(answer, 401, "Bearer")
                self.assertIn("Bearer", answer[1]["www-authenticate"])
            self.assertEqual(self.server.ask("GET", path)[0], 200)
        models = json.loads(self.server.ask("GET", "/v1/models")[2])
        self.assertEqual((models["object"], len(models["data"]), models["data"][0]["object"]), ("list", 1, "model"))
        status = json.loads(self.server.ask("GET", "/fullstop/status")[2])
        self.assertEqual((status["slots"], status["max_queue"], status["pool"]), (2, 2, 1024), "the configuration file counts")
        self.assertEqual((status["device"], status["gpu_layers"], status["ttft_target_ms"], status["slo_policy"]), ("CPU", 0, 60_000, "reject_early"))

    def test_metrics_hold_the_families_that_dashboards_need(self):
        self.server.chat()
        text = self.server.ask("GET", "/metrics")[2]
        for line in [r"fullstop_requests_running \d+", r"fullstop_requests_waiting \d+", r'fullstop_kv_blocks{state="free"} \d+',
                     r'fullstop_preemptions_total{kind="swap"} \d+', r'fullstop_answers_total{cause="token_limit",layer="settings"} \d+',
                     r"fullstop_time_to_first_token_seconds_count [1-9]\d*", r'fullstop_inter_token_latency_seconds_bucket{le="\+Inf"} [1-9]\d*']:
            self.assertRegex(text, rf"(?m)^{line}$")

    def test_a_prompt_that_cannot_fit_is_refused_before_it_is_read(self):
        for path, body in [("/v1/completions", {"prompt": "<" * 2_000_000}), ("/v1/chat/completions", {"messages": [{"role": "user", "content": "<" * 2_000_000}]})]:
            error = self.error(self.server.ask("POST", path, body), 400, "at least 1", "the window holds 512")
            self.assertEqual((error["code"], error["fullstop"]["prompt_tokens"]), ("context_length_exceeded", None))

    def test_control_tokens_in_a_message_are_text(self):
        def prompt_tokens(content):
            body = {"messages": [{"role": "user", "content": content}], "max_tokens": 1}
            return json.loads(self.server.ask("POST", "/v1/chat/completions", body)[2])["usage"]["prompt_tokens"]
        self.assertGreaterEqual(prompt_tokens("Hello<|im_end|> there") - prompt_tokens("Hello there"), 4, "one control token would be one token")

    # --- answers ------------------------------------------------------------------------------------------------------
    def test_one_answer_in_all_four_shapes(self):
        whole = json.loads(self.server.chat()[2])
        text = whole["choices"][0]["message"]["content"]
        self.assertEqual(whole["choices"][0]["finish_reason"], "length")
        self.assertEqual(whole["usage"]["completion_tokens"], 8)
        facts = whole["fullstop"]
        self.assertEqual(facts["stop"]["cause"], "token_limit")
        self.assertEqual(set(facts), {"request_id", "stop", "requested_max_tokens", "effective_max_tokens", "prompt_tokens", "cached_tokens", "output_tokens",
                                      "queue_ms", "ttft_ms", "paused_ms", "preemptions", "kv_bytes_peak", "deadline_ms", "slo"})
        self.assertEqual((set(facts["preemptions"]), set(facts["slo"]), set(facts["stop"])), ({"swap", "recompute"}, {"ttft_met", "itl_met", "ttft_estimate_ms", "demoted"}, {"cause", "by", "detail"}))

        stream = self.server.chat({"stream": True, "stream_options": {"include_usage": True}}, headers={"X-Request-Id": "mine-7"})
        self.assertEqual(stream[1]["x-request-id"], "mine-7")
        self.assertEqual("".join(e["choices"][0]["delta"].get("content", "") for e in events(stream[2]) if e["choices"]), text)
        self.assertTrue(stream[2].endswith("data: [DONE]\n\n"))
        self.assertEqual((events(stream[2])[-1]["usage"], events(stream[2])[-1]["fullstop"]["request_id"]), (whole["usage"], "mine-7"))

        prompt = {"prompt": "Rivers: the", "max_tokens": 6, "temperature": 0}
        plain = json.loads(self.server.ask("POST", "/v1/completions", prompt)[2])
        streamed = events(self.server.ask("POST", "/v1/completions", {**prompt, "stream": True})[2])
        self.assertEqual("".join(e["choices"][0]["text"] for e in streamed), plain["choices"][0]["text"])
        self.assertEqual(streamed[-1]["choices"][0]["finish_reason"], "length")

    def test_parameters_are_honoured(self):
        text = lambda more: json.loads(self.server.chat(more)[2])["choices"][0]["message"]["content"]
        plain, seeded = text({}), {"temperature": 1.5, "seed": 7, "top_p": 0.9, "top_k": 40, "min_p": 0.01}
        self.assertEqual(text(seeded), text(seeded))
        self.assertEqual(plain, text({"n": 1, "max_completion_tokens": 8, "response_format": {"type": "text"}}))
        self.assertEqual(text({"stop": [plain[3:6]]}), plain[:3])
        rated = json.loads(self.server.chat({"logprobs": True, "top_logprobs": 2})[2])["choices"][0]
        tokens = rated["logprobs"]["content"]
        self.assertEqual(bytes(b for t in tokens for b in t["bytes"]).decode(), rated["message"]["content"])
        self.assertTrue(all(t["logprob"] == t["top_logprobs"][0]["logprob"] <= 0 for t in tokens), "at temperature 0 the chosen token is the best one")
        for more in [{"frequency_penalty": 2}, {"presence_penalty": 2}, {"logit_bias": {"28": -100}}, {"fullstop": {"priority": "batch", "deadline_ms": 60000}}]:
            self.assertEqual(self.server.chat(more)[0], 200, more)
        usage = lambda messages: json.loads(self.server.ask("POST", "/v1/chat/completions", {"messages": messages, "max_tokens": 1})[2])["usage"]["prompt_tokens"]
        parts = [{"role": "user", "content": [{"type": "text", "text": QUESTION[0]["content"]}]}]
        self.assertEqual(usage(parts), usage(QUESTION))
        own = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
        self.assertEqual(usage(QUESTION), usage([{"role": "system", "content": own}, *QUESTION]), "the template adds the model's own system message")

    def test_an_answer_that_has_begun_goes_on(self):
        shown = lambda messages: json.loads(self.server.ask("POST", "/apply-template", {"messages": messages})[2])["prompt"]
        begun = QUESTION + [{"role": "assistant", "content": "The three rivers are the Nile"}]
        self.assertEqual(shown(begun), shown(QUESTION) + begun[-1]["content"])
        self.assertTrue(shown(QUESTION).endswith("<|im_start|>assistant\n"), shown(QUESTION))
        limits = {"max_tokens": 12, "temperature": 0}
        chat = json.loads(self.server.ask("POST", "/v1/chat/completions", {"messages": begun, **limits})[2])
        raw = json.loads(self.server.ask("POST", "/v1/completions", {"prompt": shown(begun), **limits})[2])
        self.assertEqual(chat["choices"][0]["message"]["content"], raw["choices"][0]["text"], "the rest alone, of the prompt that was shown")
        self.assertEqual(chat["usage"]["prompt_tokens"], raw["usage"]["prompt_tokens"])
        self.error(self.server.ask("POST", "/v1/chat/completions", {"messages": begun + begun[-1:]}), 400, "two messages of the assistant")
        self.error(self.server.ask("POST", "/apply-template", {"messages": begun}, key="wrong"), 401, "Bearer")

    def test_an_answer_has_the_form_that_was_asked_for(self):
        schema = {"type": "object", "required": ["river", "length_km", "kind"], "additionalProperties": False,
                  "properties": {"river": {"type": "string", "maxLength": 12}, "length_km": {"type": "integer", "minimum": 1, "maximum": 9999},
                                 "kind": {"enum": ["stream", "river", "canal"]}, "note": {"type": ["string", "null"], "maxLength": 10}}}
        for more in [{"temperature": 0}, {"temperature": 1.5, "seed": 3, "top_p": 0.9}, {"stream": True, "temperature": 1, "seed": 4}, {"logprobs": True, "top_logprobs": 1}]:
            status, _, text = self.server.chat({"response_format": form(schema), "max_tokens": 100, **more})
            self.assertEqual(status, 200, text)
            if "stream" in more:
                self.assertTrue(text.endswith("data: [DONE]\n\n"))
                choices = [e["choices"][0] for e in events(text) if e["choices"]]
                answer, reason = "".join(c["delta"].get("content", "") for c in choices), choices[-1]["finish_reason"]
            else:
                choice = json.loads(text)["choices"][0]
                answer, reason = choice["message"]["content"], choice["finish_reason"]
            self.assertEqual(reason, "stop", answer)
            jsonschema.validate(json.loads(answer), schema)
        cut = json.loads(self.server.chat({"response_format": form(schema), "max_tokens": 4})[2])["choices"][0]
        self.assertEqual(cut["finish_reason"], "length")
        plain = json.loads(self.server.ask("POST", "/v1/completions", {"prompt": "A JSON object:", "response_format": form({"const": {"a": [1, None]}}), "max_tokens": 40})[2])
        self.assertEqual(json.loads(plain["choices"][0]["text"]), {"a": [1, None]})
        free = json.loads(self.server.chat({"response_format": {"type": "json_object"}, "max_tokens": 60})[2])["choices"][0]
        self.assertTrue(free["message"]["content"].startswith("{"))
        if free["finish_reason"] == "stop":
            json.loads(free["message"]["content"])

    def test_a_deadline_ends_with_an_error_and_the_text_so_far(self):
        long = {"max_tokens": 400, "messages": [{"role": "user", "content": "Write a long story."}], "fullstop": {"deadline_ms": 700, "on_deadline": "partial"}}
        status, _, text = self.server.chat(long)
        body = json.loads(text)
        if status != 200:  # a fast machine may be done
            self.assertEqual((status, body["error"]["code"], body["choices"][0]["finish_reason"]), (504, "deadline", None))
            self.assertEqual(body["error"]["fullstop"]["stop"]["cause"], "generation_time_limit")
            self.assertEqual(body["error"]["fullstop"]["deadline_ms"], 700)
            self.assertTrue(body["choices"][0]["message"]["content"])
        status, _, text = self.server.chat({**long, "stream": True})
        if "generation_time_limit" in text:
            self.assertTrue(text.endswith("CUT"), "no last chunk")
            self.assertNotIn("[DONE]", text)
            self.assertNotIn('"finish_reason":"', text)

    # --- bad requests -------------------------------------------------------------------------------------------------
    def test_bad_requests_are_told_what_is_wrong(self):
        chat = "/v1/chat/completions"
        messages = '"messages":[{"role":"user","content":"x"}]'
        table = [
            (400, "POST", chat, b"{" + messages.encode() + b',"user":"\xff"}', ["not UTF-8 at byte"]),
            (400, "POST", chat, f'{{{messages},"colour":1}}'.encode(), ["colour"]),
            (400, "POST", chat, f'{{{messages},"max_tokens":1,"max_tokens":2}}'.encode(), ["max_tokens stands twice"]),
            (400, "POST", chat, b"[" * 100_000, ["nested deeper"]),
            (400, "POST", chat, b"{", ["not JSON"]),
            (400, "POST", chat, b"", ["not JSON"]),
            (400, "POST", chat, {"messages": QUESTION, "n": 2}, ["n (only 1 is)"]),
            (400, "POST", chat, {"messages": QUESTION, "response_format": {"type": "yaml"}}, ["response_format.type"]),
            (400, "POST", chat, {"messages": QUESTION, "response_format": form({"type": "object", "properties": {"a/b": {"pattern": "(?=x)"}}})}, ["/properties/a~1b", "pattern"]),
            (400, "POST", chat, {"messages": QUESTION, "response_format": form({"$ref": "https://example.org/s"})}, ["nothing else is fetched"]),
            (400, "POST", chat, {"messages": QUESTION, "response_format": form({"enum": [str(i) for i in range(150_000)]})}, ["65536"]),
            (400, "POST", chat, {"messages": QUESTION, "response_format": form({"enum": ["x" * (1 << 20)]})}, ["131072"]),
            (400, "POST", chat, {"messages": QUESTION, "response_format": form({"anyOf": [{"type": "array", "items": {"$ref": "#"}}] * 2})}, ["begin alike"]),
            (400, "POST", chat, {"messages": QUESTION, "grammar": "root ::= \"a\""}, ["grammar"]),
            (400, "POST", chat, {"messages": QUESTION, "tools": [{"type": "function"}]}, ["tools"]),
            (400, "POST", chat, {"messages": QUESTION, "logit_bias": {"9999999": 1}}, ["logit_bias[9999999]", "49152"]),
            (400, "POST", chat, {"messages": [{"role": "tool", "content": "x"}]}, ["messages[0].role"]),
            (400, "POST", chat, {"messages": QUESTION, "max_tokens": 4000}, ["4000", "512"]),
            (400, "POST", chat, {"messages": [{"role": "user", "content": "word " * 3000}]}, ["512", "shorten the prompt by"]),
            (400, "POST", "/v1/completions", {"prompt": ""}, ["empty"]),
            (404, "POST", chat, {"messages": QUESTION, "model": "gpt-9"}, ["gpt-9"]),
            (404, "POST", "/v1/embeddings", {"input": "x"}, ["/v1/embeddings"]),
            (405, "GET", chat, None, ["POST"]),
            (405, "POST", "/metrics", {}, ["GET"]),
        ]
        for status, method, path, body, words in table:
            with self.subTest(body=str(body)[:80], path=path):
                self.error(self.server.ask(method, path, body), status, *words)
        huge = self.server.ask("POST", chat, b'{"messages":[{"role":"user","content":"' + b"a" * (10 << 20) + b'"}]}', headers={"X-Request-Id": "huge-1"})
        self.assertEqual((huge[0], huge[1]["x-request-id"]), (413, "huge-1"))
        self.assertIn("8388608 bytes", huge[2])
        self.error(self.server.chat(headers={"X-Request-Id": "two words"}), 400, "X-Request-Id")
        self.assertEqual(self.server.chat()[0], 200, "and it still serves")

    def test_a_full_queue_refuses_with_an_estimate(self):
        with concurrent.futures.ThreadPoolExecutor(8) as users:
            long = {"max_tokens": 60, "messages": [{"role": "user", "content": "Write a long story."}]}
            answers = [job.result() for job in [users.submit(self.server.chat, long) for _ in range(8)]]
        refused = [answer for answer in answers if answer[0] == 503]
        self.assertEqual(len(answers) - len(refused), sum(answer[0] == 200 for answer in answers))
        self.assertTrue(2 <= len(refused) <= 4, "two run, two wait, and some may have come late enough")
        for answer in refused:
            self.error(answer, 503, "waiting")
            self.assertGreaterEqual(int(answer[1]["retry-after"]), 1)

    # --- clients and signals ------------------------------------------------------------------------------------------
    def test_a_client_that_does_not_read_holds_up_nobody(self):
        body = json.dumps({"messages": [{"role": "user", "content": "Write a long story."}], "max_tokens": 150, "stream": True, "temperature": 0,
                           "logprobs": True, "top_logprobs": 20}).encode()
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            slow.connect(("127.0.0.1", self.server.port))
            slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + KEY.encode() +
                         b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            for _ in range(3):
                self.assertEqual(self.server.chat()[0], 200)
            deadline = time.monotonic() + 30
            while json.loads(self.server.ask("GET", "/fullstop/status")[2])["running"] and time.monotonic() < deadline:
                time.sleep(0.1)
            self.assertLess(time.monotonic(), deadline, "its answer is computed to the end whether or not it reads")
            taken = b""
            slow.settimeout(10)
            while b"\r\n0\r\n\r\n" not in taken and (piece := slow.recv(1 << 16)):
                taken += piece
        self.assertIn(b"[DONE]", taken, "what it had not read was kept for it")

    def test_sigterm_in_mid_stream_ends_with_its_reason(self):
        server = Server("--drain", "1s", "--max-sequences", "1", "--kv-tokens", "1024", "--threads", "1")
        with concurrent.futures.ThreadPoolExecutor(1) as user:
            # Each token is forbidden to end the answer, so that it goes on until something else ends it.
            job = user.submit(server.chat, {"stream": True, "max_tokens": 900, "logit_bias": {"2": -100, "0": -100}, "messages": [
                {"role": "user", "content": "Write a long story."}]}, key=None)
            time.sleep(1)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            late = server.ask("GET", "/health", key=None) if server.process.poll() is None else None
            status, _, text = job.result()
        code, said = server.ended()
        self.assertEqual((code, status), (0, 200), said)
        if late is not None:
            self.assertEqual((late[0], json.loads(late[2])["status"]), (503, "draining"))
        self.assertTrue(text.endswith("CUT"), text[-200:])
        self.assertNotIn("[DONE]", text)
        error = events(text)[-1]["error"]
        self.assertEqual(error["fullstop"]["stop"]["cause"], "aborted_by_server")
        self.assertIn("drain limit of 1 s", error["message"])

    def test_a_second_sigterm_does_not_wait_for_the_answers(self):
        server = Server("--drain", "60s", "--max-sequences", "1", "--kv-tokens", "4096", "--threads", "1")
        with concurrent.futures.ThreadPoolExecutor(1) as user:
            job = user.submit(server.chat, {"stream": True, "max_tokens": 3000, "logit_bias": {"2": -100, "0": -100}, "messages": [
                {"role": "user", "content": "Write a long story."}]}, key=None)
            time.sleep(1)
            began = time.monotonic()
            for _ in range(2):
                server.process.send_signal(signal.SIGTERM)
                time.sleep(0.3)
            server.process.wait(30)
            self.assertLess(time.monotonic() - began, 25, "it waited for the answer")
            try:
                self.assertNotIn("[DONE]", job.result()[2])
            except ConnectionResetError:
                pass  # as hard an end as a cut can have
        server.ended()

    # --- what keeps it from starting ----------------------------------------------------------------------------------
    def test_what_keeps_it_from_starting_is_named(self):
        file = lambda name, content: (self.folder / name).write_bytes(content) and str(self.folder / name)
        model = pathlib.Path(MODEL).read_bytes()
        cut = file("cut.gguf", model[: len(model) // 2])
        made_up = file("made_up.gguf", b"GGUF" + (3).to_bytes(4, "little") + (1 << 62).to_bytes(8, "little") * 2)
        little = lambda: resource.setrlimit(resource.RLIMIT_AS, (90 << 20, 90 << 20))
        table = [
            (2, ["--listen", f"127.0.0.1:{self.server.port}"], ["port is taken"], None),
            (4, ["--model", str(self.folder / "none.gguf")], ["none.gguf"], None),
            (4, ["--model", file("text.gguf", b"hello")], ["not a GGUF"], None),
            (4, ["--model", cut], ["cut.gguf", "not within the file bounds"], None),
            (4, ["--model", made_up], ["made_up.gguf", "number of tensors"], None),
            (4, [], ["memory", "smaller model"], little),
            (4, ["--kv-tokens", "900000000", "--kv-layout", "unified"], ["MiB are available", "--kv-tokens"], None),
            (2, ["--config", file("a.toml", b'quiet = true\nmax-sequence = 3\n')], ["a.toml:2", "max-sequences"], None),
            (2, ["--config", file("b.toml", b"listen = \n")], ["b.toml:1"], None),
            (2, ["--api-key-file", file("bad_keys", b"a:1\nb:two words\n")], ["bad_keys:2"], None),
            (2, ["--max-sequences", "0"], ["--max-sequences"], None),
        ]
        for code, words, said, limit in table:
            with self.subTest(words=words):
                flags = {"--model": MODEL, "--listen": "127.0.0.1:0", **dict(zip(words[::2], words[1::2]))}
                result = subprocess.run([FULLSTOP, "serve", *(word for flag in flags.items() for word in flag)], capture_output=True, text=True, timeout=60,
                                        preexec_fn=limit)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertEqual(result.stdout, "", "nothing listens")
                for word in said:
                    self.assertIn(word, result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
