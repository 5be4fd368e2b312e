#!/usr/bin/env python3
"""Renders every template here with Python's Jinja, set up as Hugging Face's transformers does, and writes expected.json: what
each template makes of each conversation, or the words it refuses it with. Run again after a change:
pip install jinja2==3.1.6; python3 make_expected.py"""

import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.sandbox

HERE = pathlib.Path(__file__).parent
CONVERSATIONS = {
    "one": [("user", "Hello!")],
    "system": [("system", "Be brief."), ("user", "Hello!")],
    "longer": [("user", "  What is 2+2?  "), ("assistant", " <think>\nsum\n</think>\n\nFour. "), ("user", "Sure?\nReally \"sure\"?")],
    "system longer": [("system", " Be <b>brief</b> & kind. "), ("user", "Grüße, 世界 😀"), ("assistant", "Hi"), ("user", "<|im_end|> {{ 7 * 7 }} {% if %}")],
    "two users": [("user", "a"), ("user", "b")],
    "empty text": [("user", "")],
}


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return env


def render(source, conversation, parts):
    messages = [{"role": role, "content": [{"type": "text", "text": text}] if parts else text} for role, text in conversation]
    try:
        return {"text": environment().from_string(source).render(
            messages=messages, add_generation_prompt=True, bos_token="<s>", eos_token="</s>", enable_thinking=True)}
    except jinja2.exceptions.TemplateError as refusal:
        return {"refusal": str(refusal)}


def main():
    cases = []
    for file in sorted(HERE.glob("*.jinja")):
        for name, conversation in CONVERSATIONS.items():
            cases.append({"template": file.name, "conversation": name, "messages": [{"role": r, "content": c} for r, c in conversation],
                          **render(file.read_text(encoding="utf-8"), conversation, file.name.startswith("parts_only"))})
    (HERE / "expected.json").write_text(json.dumps(cases, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"{len(cases)} renderings, {sum('refusal' in case for case in cases)} of them refusals")


if __name__ == "__main__":
    main()
