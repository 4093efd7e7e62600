"""stepctl and stepctl-operator are one program to whoever types: what one of them says, the other says too."""

import json
import os
import shutil
import subprocess

import pytest

from programs import BINARIES, STEPCTL

OPERATOR = BINARIES / "stepctl-operator"
OF_TECHNICIANS = ["calibrate", "evaluate", "provision", "operator", "traffic"]

LINES = [
    *([command, "--help"] for command in OF_TECHNICIANS),
    *(["help", command] for command in OF_TECHNICIANS),
    ["provision", "vehicle", "--help"], ["help", "operator", "keys", "rotate"], ["operator", "keys"],
    ["provision", "vehicel"], ["provison"], ["operator", "tokens"], ["traffic", "delay", "--feeed", "x"],
    ["--json", "provision", "token", "nowhere", "--rider", "anna"], ["-q", "operator", "tokens", "nowhere"],
    ["--vehicle", "car", "provision", "token"], ["provision", "--for", "8h", "token", "car"], ["calibrate", "--json", "-x"],
    ["--help"], ["help"], ["help", "--all"], ["help", "--all", "traffic"], ["help", "open", "--all"], ["--version"],
    ["open", "--help"], ["opne"], ["open", "middle"], ["help", "open"],
    ["---completion", "provision", "vehicle", "--", "--servo", "0", "0"],
]


def answer(path, line, folder, name="stepctl"):
    ended = subprocess.run(
        [name, *line], executable=path, cwd=folder, capture_output=True, text=True, timeout=60,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "COLUMNS": "80"})
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_both_say_the_same(tmp_path, line):
    assert answer(STEPCTL, line, tmp_path) == answer(OPERATOR, line, tmp_path)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_has_the_commands_of_both(tmp_path, shell):
    script = answer(STEPCTL, ["--generate-completion-script", shell], tmp_path)
    assert script == answer(OPERATOR, ["--generate-completion-script", shell], tmp_path)
    assert script[0] == 0 and "rotate" in script[1] and "enroll" in script[1]


@pytest.fixture
def alone(tmp_path):
    """stepctl as a rider installs it, without what only technicians use."""
    shutil.copy(STEPCTL, tmp_path / "stepctl")
    return tmp_path / "stepctl"


@pytest.mark.parametrize("command", OF_TECHNICIANS)
def test_a_rider_without_the_other_program_is_told_what_to_install(alone, tmp_path, command):
    status, out, err = answer(alone, [command, "--json", "x"], tmp_path)
    assert (status, json.loads(out)["code"]) == (69, "unavailable")
    assert err == (
        "stepctl: error: stepctl-operator is not installed: this command is for technicians and operators\n"
        "hint: install Debian's package stepctl-operator\n")


def test_a_rider_without_it_reads_the_same_list_and_the_same_suggestion(alone, tmp_path):
    for line in (["--help"], ["help", "--all"], ["provison"], ["--version"], ["open", "--help"]):
        assert answer(alone, line, tmp_path) == answer(OPERATOR, line, tmp_path)
    status, script, _ = answer(alone, ["--generate-completion-script", "bash"], tmp_path)
    assert status == 0 and "enroll" in script and "rotate" not in script
