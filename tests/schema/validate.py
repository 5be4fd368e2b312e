#!/usr/bin/env python3
"""Holds documents against their JSON Schema: `validate.py SCHEMA DOCUMENT...` prints each break and exits 1 with any.

Besides what the schema says, a field it does not name is a break too: published schemas let readers ignore additions,
but this project documents what it writes. `validate.py --self-test SCHEMA DOCUMENT` plants breaks and expects each to
be found."""

import copy
import json
import pathlib
import sys

import jsonschema


def closed(schema):
    """The schema with every object that names its properties closed to further ones. Facts are left open: they combine two lists."""
    if isinstance(schema, dict):
        schema = {key: closed(value) for key, value in schema.items()}
        if "properties" in schema and "required" in schema:
            schema.setdefault("additionalProperties", False)
        return schema
    return [closed(value) for value in schema] if isinstance(schema, list) else schema


def reject_constant(word):
    raise ValueError(f"{word} is no JSON")


def breaks(schema, document):
    validator = jsonschema.Draft202012Validator(closed(schema))
    for error in sorted(validator.iter_errors(document), key=lambda e: list(map(str, e.absolute_path))):
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
        yield f"{place or 'the document'}: {error.message[:300]}"


def self_test(schema, document):
    def planted(change):
        broken = copy.deepcopy(document)
        change(broken)
        return broken

    def add(where, key, value):
        where[key] = value

    plants = {
        "another schema": lambda d: add(d, "schema", "fullstop.run/2"),
        "a missing field": lambda d: d["verdict"].pop("missing"),
        "an undocumented field": lambda d: add(d["records"][0], "surprise", 1),
        "an unknown word": lambda d: add(d["records"][0], "cause", "gremlins"),
        "an unavailable fact with a value": lambda d: add(d["records"][0]["queue_ms"], "from", "unavailable"),
        "a fact without its reason": lambda d: add(d["records"][0], "paused_ms", {"value": None, "from": "unavailable", "how": ""}),
        "a measured fact without a value": lambda d: add(d["records"][0], "queue_ms", {"value": None, "from": "measured", "how": "x"}),
        "a number as text": lambda d: add(d["arms"][0]["levels"][0], "cut", "2"),
        "a step of three": lambda d: d["experiment"]["order"].append(["deployed", 1, 2]),
    }
    missed = [name for name, change in plants.items() if not list(breaks(schema, planted(change)))]
    for name in missed:
        print(f"not found: {name}")
    print(f"{len(plants) - len(missed)} of {len(plants)} planted breaks found")
    return 1 if missed else 0


def main(arguments):
    planting = arguments[:1] == ["--self-test"]
    paths = [pathlib.Path(argument) for argument in arguments[planting:]]
    if len(paths) < 2:
        print(__doc__)
        return 2
    schema, *documents = [json.loads(path.read_text(encoding="utf-8"), parse_constant=reject_constant) for path in paths]
    jsonschema.Draft202012Validator.check_schema(schema)
    if planting:
        return self_test(schema, documents[0])
    found = [f"{path}: {message}" for path, document in zip(paths[1:], documents) for message in breaks(schema, document)]
    print("\n".join(found) if found else f"{len(documents)} documents hold")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
