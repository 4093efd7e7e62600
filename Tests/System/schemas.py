"""The schema of what stepctl prints with --json, and whether what was printed keeps it."""

import copy
import json
from functools import cache
from itertools import dropwhile
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
    if "--version" in arguments:
        return "version"
    known = definitions()
    words = []
    for word in dropwhile(lambda word: word in ("--json", "--quiet", "-q", "--verbose", "-v", "--no-color"), arguments):
        longer = "-".join([*words, word])
        if not any(name == longer or name.startswith(f"{longer}-") for name in known):
            break
        words.append(word)
    found = "-".join(words)
    if found == "bookings":
        return "bookings-list"
    return found if found in known else "failure" if words else "bare"


def check(arguments: tuple, output: str):
    """Every line is what the schema says of the command."""
    definition = name(tuple(map(str, arguments)))
    for line in output.splitlines():
        value = json.loads(line)
        errors = list(_validator(definition).iter_errors(value))
        assert not errors, f"{definition}: {line}\n{errors[0].message}"
