"""The schema of what stepctl prints with --json, and whether what was printed keeps it."""

import copy
import json
from functools import cache
from pathlib import Path

from jsonschema import Draft202012Validator

SCHEMA = Path(__file__).resolve().parents[2] / "schema/stepctl.json"


def _closed(schema):
    """The same schema without members that it does not name: stepctl may add some later, and then has to name them."""
    if isinstance(schema, dict):
        schema = {key: _closed(value) for key, value in schema.items()}
        if "properties" in schema:
            schema["additionalProperties"] = False
    elif isinstance(schema, list):
        schema = [_closed(value) for value in schema]
    return schema


@cache
def definitions() -> dict:
    document = json.loads(SCHEMA.read_text())
    Draft202012Validator.check_schema(document)
    return _closed(copy.deepcopy(document["$defs"]))


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator({"$defs": definitions(), "$ref": f"#/$defs/{name}"})


def name(arguments: tuple[str, ...]) -> str:
    """The definition for what was typed."""
    words = []
    for word in arguments:
        if word.startswith("-"):
            break
        if "-".join([*words, word]) not in definitions() and not any(
            known.startswith("-".join([*words, word]) + "-") for known in definitions()
        ):
            break
        words.append(word)
    found = "-".join(words)
    return found if found in definitions() else "failure" if words or arguments[:1] != ("--json",) else "bare"


def check(arguments: tuple, output: str):
    """Every line is what the schema says of the command."""
    definition = name(tuple(map(str, arguments)))
    for line in output.splitlines():
        value = json.loads(line)
        errors = list(_validator(definition).iter_errors(value))
        assert not errors, f"{definition}: {line}\n{errors[0].message}"
