"""What an operator types wrong: one line says so, and another one what to type."""

import json

import pytest

from server import STEPFLEET, Server


@pytest.fixture(scope="module")
def types(tmp_path_factory):
    return Server.at(Server.__new__(Server), tmp_path_factory.mktemp("nowhere")).types


@pytest.mark.parametrize("words, error, hint", [
    ("vehcle list", "there is no command `stepfleet vehcle`", "did you mean `stepfleet vehicle`?"),
    ("vehicle lst", "there is no command `stepfleet vehicle lst`", "did you mean `stepfleet vehicle list`?"),
    ("vehicle list --jsn", 'unknown option "--jsn"', 'did you mean "--json"?'),
    ("serve DIR --port x", 'the value "x" is invalid for "--port <port>"', None),
    ("vehicle place Van 91,0", "91,0: a place is LATITUDE,LONGITUDE in degrees, as 48.7758,9.1829", None),
    ("revoke", "give one of --booking, --device and --account", None),
    ("vehicle show", 'missing expected argument "<vehicle>"', None),
])
def test_what_is_typed_wrong_is_said_in_one_line(types, words, error, hint):
    ended = types(*words.split())
    lines = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout, lines[0]) == (64, "", f"stepfleet: error: {error}"), ended
    assert len(lines) <= 2 and (hint is None or lines[1] == f"hint: {hint}"), ended


def test_a_program_gets_an_object(types):
    ended = types("vehicle", "list", "--json")
    told = json.loads(ended.stdout)
    assert (ended.returncode, told["exit"], told["code"]) == (66, 66, "no_input"), ended
    assert told["message"].endswith("is not the folder of a fleet's server") and told["hint"], told


def test_help_has_examples_and_the_version_the_build(types):
    said = types("--help")
    assert said.returncode == 0 and "stepfleet init /srv/fleet --host fleet.example" in said.stdout, said
    assert max(map(len, said.stdout.splitlines())) <= 80
    version = types("--version").stdout.splitlines()
    assert version[-1].startswith("architecture "), version
    assert json.loads(types("--version", "--json").stdout)["version"] == version[0]
