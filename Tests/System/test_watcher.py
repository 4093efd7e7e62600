"""Who may only look; and INTEGRATING.md's examples, as they stand there."""

import json
import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from programs import REPOSITORY, STEPCTL, Running

PAGE = (REPOSITORY / "INTEGRATING.md").read_text()
HOME_ASSISTANT = REPOSITORY / ".build/homeassistant/bin/python"


def example(language: str, text: str) -> str:
    """The example of that language that has the text in it."""
    (found,) = [block for block in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if text in block]
    return found


@pytest.fixture
def watcher(vehicle) -> Path:
    made = vehicle.stepctl("provision", "watcher", vehicle.folder, "--name", "home", "--home-assistant", "--json")
    assert made.status == 0, made
    vehicle.keeps_secret(vehicle.folder / "watchers/home/watcher.key")
    return Path(made.json["folder"])


def test_a_watcher_sees_and_cannot_do_more(vehicle, watcher, alice, tmp_path):
    script = tmp_path / "watch.py"
    script.write_text(example("python", "def watch"))
    arguments = [sys.executable, script, "localhost", vehicle.port, vehicle.topic, watcher]
    with closing(Running(arguments, tmp_path / "watch.log", dict(os.environ), vehicle.transcript)) as watching:
        watching.says("left/status close", file=watching.stdout)
        watching.says("availability online", file=watching.stdout)
        assert alice.moves("open", "left").status == 0
        watching.says("left/status open", file=watching.stdout)
    before = vehicle.broker.said
    login = ["--cafile", watcher / "ca.pem", "--cert", watcher / "watcher.pem", "--key", watcher / "watcher.key"]
    topic = vehicle.set_position("left")
    subprocess.run(
        ["mosquitto_pub", "-h", "localhost", "-p", str(vehicle.port), *login, "-q", "1", "-t", topic, "-m", "x"],
        check=False, capture_output=True)
    vehicle.broker.says("Denied PUBLISH", after=before)
    assert len(vehicle.motions) == 1


def test_a_second_watcher_of_a_name_is_refused(vehicle, watcher):
    again = vehicle.stepctl("provision", "watcher", vehicle.folder, "--name", "home", "--json")
    assert (again.status, again.json["code"]) == (1, "failure") and "already exists" in again.error


@pytest.mark.parametrize(("at", "status"), [("left", 0), ("between", 3)])
def test_the_shell_example_does_what_it_says(vehicle, alice, tmp_path, at, status):
    script = tmp_path / "open.sh"
    script.write_text(example("sh", "stepctl open"))
    environment = vehicle.stepctl.environment | {
        "PATH": f"{STEPCTL.parent}:{os.environ['PATH']}", "STEPCTL_VEHICLE": str(alice.file),
        "STEPCTL_RADIO": vehicle.radio(at),
    }
    ended = subprocess.run(["sh", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ended.returncode == status, ended
    assert len(vehicle.motions) == (status == 0)


def test_the_python_example_opens_and_says_why_it_does_not(vehicle, alice, tmp_path):
    names = {}
    exec(example("python", "def open_step"), names)
    environment = {
        "PATH": f"{STEPCTL.parent}:{os.environ['PATH']}", "STEPCTL_VEHICLE": str(alice.file), "HOME": str(tmp_path)}
    original = dict(os.environ)
    os.environ |= environment | {"STEPCTL_RADIO": vehicle.radio("left")}
    try:
        assert names["open_step"]() == "left"
        os.environ["STEPCTL_RADIO"] = vehicle.radio("between")
        with pytest.raises(RuntimeError, match="not located"):
            names["open_step"](tries=1)
    finally:
        os.environ.clear()
        os.environ.update(original)


def test_the_statuses_of_the_page_are_those_of_the_manual():
    listed = re.findall(r"^\| (\d+) \| ?`?(\w*)`? \|", PAGE, re.MULTILINE)
    manual = (REPOSITORY / "man/stepctl.1").read_text()
    statuses = re.findall(r"^\.It (\d+)$", manual.split(".Sh EXIT STATUS")[1].split(".Sh EXAMPLES")[0], re.MULTILINE)
    assert [number for number, _ in listed] == statuses
    schema = json.loads((REPOSITORY / "schema/stepctl.json").read_text())
    assert [code for _, code in listed if code] == schema["$defs"]["failure"]["properties"]["code"]["enum"]


def discovered(watcher: Path) -> list[dict]:
    return [json.loads(line) for line in (watcher / "homeassistant.jsonl").read_text().splitlines()]


def test_home_assistant_is_told_of_each_step(vehicle, watcher):
    messages = discovered(watcher)
    assert [json.loads(message["payload"])["state_topic"] for message in messages] == [
        vehicle.status("left"), vehicle.status("right")]
    assert all(message["topic"].startswith("homeassistant/binary_sensor/") for message in messages)


@pytest.mark.skipif(
    not HOME_ASSISTANT.exists(),
    reason="Home Assistant could not be installed")
def test_home_assistants_own_code_accepts_the_messages_and_reads_a_statement(vehicle, watcher, tmp_path):
    statement = vehicle.folder / "statement"
    login = ["--cafile", watcher / "ca.pem", "--cert", watcher / "watcher.pem", "--key", watcher / "watcher.key"]
    kept = subprocess.run(
        ["mosquitto_sub", "-h", "localhost", "-p", str(vehicle.port), *login, "-C", "1", "-t", vehicle.status("left")],
        check=True, capture_output=True, text=True)
    statement.write_text(kept.stdout.strip())
    script = tmp_path / "accept.py"
    script.write_text(
        "import json, sys\n"
        "from homeassistant.components.mqtt.binary_sensor import DISCOVERY_SCHEMA\n"
        "from homeassistant.helpers.template import Template\n"
        "from homeassistant.core import HomeAssistant\n"
        "import asyncio\n"
        "async def main():\n"
        "    hass = HomeAssistant('/tmp')\n"
        "    for line in open(sys.argv[1]):\n"
        "        config = DISCOVERY_SCHEMA(json.loads(json.loads(line)['payload']))\n"
        "        template = config['value_template']\n"
        "        template.hass = hass\n"
        "        print(template.async_render_with_possible_json_value(open(sys.argv[2]).read()))\n"
        "asyncio.run(main())\n")
    ended = subprocess.run(
        [HOME_ASSISTANT, script, watcher / "homeassistant.jsonl", statement], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout.split()) == (0, ["close", "close"]), ended.stderr
