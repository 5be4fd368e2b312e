"""What the official OpenAI SDK for Python makes of each answer: sdk_client.py BASE_URL CASE... prints one JSON line for each case and mode."""

import json
import sys

import openai


def ask(client, case, stream):
    answer = client.chat.completions.create(model=case, messages=[{"role": "user", "content": "x"}], stream=stream)
    if not stream:
        return {"text": answer.choices[0].message.content, "reason": answer.choices[0].finish_reason}
    text, reason = "", None
    for event in answer:
        for choice in event.choices:
            text += choice.delta.content or ""
            reason = choice.finish_reason or reason
    return {"text": text, "reason": reason}


def main():
    client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0, timeout=20)
    for case in sys.argv[2:]:
        for stream in (True, False):
            line = {"case": case, "stream": stream, "text": None, "reason": None, "error": None}
            try:
                line |= ask(client, case, stream)
            except Exception as error:  # any: the test judges which
                line["error"] = f"{type(error).__module__}.{type(error).__name__}: {error}"[:500]
            print(json.dumps(line), flush=True)


main()
