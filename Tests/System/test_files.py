"""Vehicle files and configuration that are wrong, who wins where two say different things, and what is provisioned."""

import json
import os
import re
import resource
import shutil
import socket
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import captures
from captures import VEHICLE
from programs import AS_ANYBODY, STEPCTL, STEPD, can_mount, mounted, wait_until

LINES = f"""\
name = "Rolling Chassis"
uuid = "{VEHICLE}"

[[steps]]
id = "left"
side = "left"
major = 1

[[steps]]
id = "right"
side = "right"
major = 2
"""


@pytest.fixture
def told(stepctl, tmp_path):
    """What `locate` says of a vehicle file: the status and the line."""

    def read(text: str):
        (tmp_path / "car.toml").write_text(text)
        ended = stepctl("locate", "--vehicle", "car.toml", "--radio", "btsnoop:/dev/null", folder=tmp_path)
        assert ended.stdout == ""
        return ended.status, ended.error

    return read


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (LINES[LINES.index("[[steps]]") :], "", "car.toml: steps is missing: a vehicle has at least one [[steps]]"),
        ("major = 2", "major = 1", "car.toml:12: [[steps]] major: 1 is taken by the step in line 7"),
        ('id = "right"', 'id = "left"', 'car.toml:10: [[steps]] id: "left" is taken by the step in line 5'),
        ('side = "right"', 'side = "left"', 'car.toml:11: [[steps]] side: "left" is taken by the step in line 6'),
        ('name = "Rolling Chassis"', "", "car.toml: name is missing"),
        (
            'name = "Rolling Chassis"',
            'name = ""',
            'car.toml:1: name: expected 1 to 128 bytes of text without control characters, found ""',
        ),
        (
            'name = "Rolling Chassis"',
            f'name = "{"x" * 129}"',
            f'car.toml:1: name: expected 1 to 128 bytes of text without control characters, found "{"x" * 40}"…',
        ),
        ("1b2a90", "1b2a9", r'car.toml:2: uuid: expected a UUID \(8-4-4-4-12 hexadecimal digits\), found "5f3c1c0e.*"'),
        ("uuid =", "uiud =", 'car.toml:2: uiud: unknown key, did you mean "uuid"?'),
        ("major = 2", "mayor = 2", r'car.toml:12: [[steps]] mayor: unknown key, did you mean "major"?'),
        (
            "major = 2",
            "colour = 2",
            "car.toml:12: [[steps]] colour: unknown key, expected id, side, major, measured_power, minor or tags",
        ),
        ("major = 2", 'major = "2"', 'car.toml:12: [[steps]] major: expected an integer from 0 to 65535, found "2"'),
        (
            "major = 2",
            "major = 65536",
            "car.toml:12: [[steps]] major: expected an integer from 0 to 65535, found 65536",
        ),
        ("major = 2", "major = -1", "car.toml:12: [[steps]] major: expected an integer from 0 to 65535, found -1"),
        ("major = 2", "major = 2.0", "car.toml:12: [[steps]] major: expected an integer from 0 to 65535, found 2"),
        ("major = 2", "", "car.toml:9: [[steps]] major is missing"),
        ('side = "right"', 'side = "top"', 'car.toml:11: [[steps]] side: expected "left" or "right", found "top"'),
        (
            'id = "right"',
            'id = "Right"',
            'car.toml:10: [[steps]] id: expected 1 to 32 of a-z, 0-9, "-" and "_", found "Right"',
        ),
        (LINES, 'steps = "left"', None),
        ("major = 2", "major = 2\nmajor = 3", "car.toml:13: not TOML, column "),
        ("major = 2", "major =", "car.toml:12: not TOML, column "),
        (LINES, "\0", "car.toml:1: not TOML, column "),
    ],
)
def test_a_vehicle_file_that_is_wrong_is_told_with_its_line(told, old, new, error):
    assert old in LINES
    status, line = told(LINES.replace(old, new))
    assert status == 78
    if error is None:
        assert line.startswith("car.toml")
    elif ".*" in error:
        assert re.fullmatch(error, line)
    elif error.endswith("column "):
        assert line.startswith(error)
    else:
        assert line == error


def test_a_control_character_in_a_file_does_not_reach_the_terminal(told):
    status, line = told(LINES.replace('"left"', r'"\u001b[31mleft"'))
    assert status == 78 and "\x1b" not in line


def test_a_name_that_turns_the_line_around_does_not_reach_the_terminal(file_vehicle, stepctl, tmp_path):
    text = (file_vehicle.folder / "vehicle.toml").read_text()
    (tmp_path / "vehicle.toml").write_text(re.sub('name = ".*"', 'name = "a\\\\u202eb"', text))
    (tmp_path / "empty.btsnoop").write_bytes(b"btsnoop\0\0\0\0\1\0\0\3\xea")
    given = ("--vehicle", tmp_path / "vehicle.toml", "--radio", f"btsnoop:{tmp_path}/empty.btsnoop")
    ended = stepctl("locate", *given)
    assert ended.status == 3 and "hint: no beacon of a\ufffdb is heard\n" in ended.stderr


def test_a_host_or_a_path_that_turns_the_line_around_does_not_reach_the_terminal(file_vehicle, stepctl, tmp_path):
    text = (file_vehicle.folder / "riders/alice/vehicle.toml").read_text()
    text, count = re.subn('^(host|ca|token|device_key) = "', "\\g<0>\u202e", text, flags=re.MULTILINE)
    assert count == 4
    file = tmp_path / "vehicle.toml"
    file.write_text(text)
    shown = stepctl("config", "show", "--vehicle", file)
    assert shown.status == 0
    assert all(character.isprintable() for character in shown.stdout.replace("\n", ""))
    assert shown.stdout.count("\ufffd") == 4


def test_files_that_cannot_be_read_are_told(stepctl, tmp_path):
    missing = stepctl("locate", "--vehicle", "car.toml", folder=tmp_path)
    assert (missing.status, missing.error) == (66, "cannot open car.toml: No such file or directory")
    folder = stepctl("locate", "--vehicle", f"{tmp_path}/")
    assert (folder.status, folder.error) == (66, f"cannot open {tmp_path}/vehicle.toml: No such file or directory")
    (tmp_path / "car.toml").write_text("#" * 70_000)
    large = stepctl("locate", "--vehicle", "car.toml", folder=tmp_path)
    assert large.status == 78 and large.error.startswith("car.toml: ")
    (tmp_path / "car.toml").chmod(0)
    closed = stepctl("locate", "--vehicle", "car.toml", folder=tmp_path, prefix=AS_ANYBODY)
    assert (closed.status, closed.error) == (77, "cannot open car.toml: Permission denied")


@pytest.mark.parametrize("part", ["topic", "broker", "controller", "rider"])
def test_what_a_command_needs_and_locate_does_not_is_told(file_vehicle, tmp_path, part):
    rider = file_vehicle.folder / "riders/alice"
    shutil.copytree(rider, tmp_path / "alice")
    file = tmp_path / "alice/vehicle.toml"
    text = file.read_text()
    pattern = r"^topic = .*$" if part == "topic" else rf"^\[{part}\]\n(?:(?!\[).*\n)*"
    changed, count = re.subn(pattern, "", text, flags=re.MULTILINE)
    assert count == 1
    file.write_text(changed)
    name = part if part == "topic" else f"[{part}]"
    ended = file_vehicle.stepctl("status", "--vehicle", file)
    missing = f"{file}: {name} is missing: commands need it; a rider's vehicle file has it"
    assert (ended.status, ended.stdout, ended.error) == (78, "", missing)
    located = file_vehicle.stepctl("locate", "--vehicle", file, "--radio", file_vehicle.radio("left"))
    assert located.status == 0


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"travel_s": 0.1}, "[servo] travel_s: expected a number from 0.2 to 20, found 0.1"),
        ({"travel_s": 5}, "[servo] limit_s: 5 is not more than travel_s, 5"),
        ({"driver": "steam"}, '[servo] driver: expected "simulated", "pwm" or "pca9685", found "steam"'),
        ({"installed": "ajar"}, '[servo] installed: expected "open" or "close", found "ajar"'),
        ({"zone": "far"}, '[policy] zone: expected "immediate" or "near", found "far"'),
        (
            {"operator": "AAAA"},
            "[keys] operator: expected 32 bytes as base64url without padding (length 43), found text of length 4",
        ),
    ],
)
def test_a_controllers_file_that_is_wrong_is_told_with_its_line(new_vehicle, changes, error):
    vehicle = new_vehicle()
    vehicle.edit("stepd.toml", **changes)
    ended = vehicle.checks()
    assert (ended.status, ended.stdout) == (78, "")
    (line,) = ended.stderr.splitlines()
    assert re.sub(r":\d+:", ":N:", line) == f"stepd: error: {vehicle.folder}/stepd.toml:N: {error}"


# --- Who wins ---


@pytest.fixture
def config(stepctl, tmp_path):
    """`config show --json` in a system whose /etc and whose home hold these files, as a table of values and origins."""
    etc, home = tmp_path / "etc", tmp_path / "home"

    def show(*arguments, system: str | None = None, user: str | None = None, **variables):
        for folder, text in ((etc / "stepctl", system), (home / ".config/stepctl", user)):
            folder.mkdir(parents=True, exist_ok=True)
            if text is not None:
                (folder / "config.toml").write_text(text)
        ended = stepctl(
            "config", "show", "--json", *arguments, prefix=mounted(etc, "/etc"), HOME=str(home), **variables
        )
        assert (ended.status, ended.stderr) == (0, "")
        return {name: tuple(row.values()) for name, row in ended.json.items() if name != "vehicle_file"}

    return show


@pytest.mark.skipif(not can_mount(), reason="needs unshare(1) and mount(8), to have another /etc")
def test_the_flag_wins_over_the_variable_over_the_users_file_over_the_systems(config):
    assert config()["radio"] == ("hci0", "default")
    assert config(system='radio = "hci1"')["radio"] == ("hci1", "/etc/stepctl/config.toml:1")
    assert config(user='\nradio = "hci2"')["radio"] == ("hci2", "~/.config/stepctl/config.toml:2")
    assert config(STEPCTL_RADIO="hci3")["radio"] == ("hci3", "STEPCTL_RADIO")
    assert config("--radio", "hci4", STEPCTL_RADIO="hci3")["radio"] == ("hci4", "flag --radio")
    assert config(STEPCTL_RADIO="")["radio"] == ("hci2", "~/.config/stepctl/config.toml:2"), "empty is unset"
    shown = config(system="timeout = 3\n", user='radio = "hci2"')
    assert shown["timeout_s"] == (3, "/etc/stepctl/config.toml:1"), "each setting by itself"


def test_settings_that_cannot_be_are_told_with_who_said_them(stepctl, tmp_path):
    folder = tmp_path / "stepctl"
    folder.mkdir()
    for status, arguments, variables, origin in (
        (64, ["--timeout", "0"], {}, "--timeout"),
        (78, [], {"STEPCTL_TIMEOUT": "soon"}, "STEPCTL_TIMEOUT"),
    ):
        ended = stepctl("config", "show", *arguments, **variables)
        assert (ended.status, ended.stdout) == (status, "")
        assert ended.error.startswith(f"{origin}: expected 0.1 s to 1 h, as 10, 10s or 2m, found ")
    radio = stepctl("scan", STEPCTL_RADIO="rubbish")
    assert (radio.status, radio.stdout) == (78, "")
    assert radio.error.startswith('STEPCTL_RADIO: "rubbish" is not a radio: ')
    for text, error in (
        ("timeout = 0", ":1: timeout: expected 0.1 s to 1 h, as 10, 10s or 2m, found 0"),
        ("\ntimout = 3", ':2: timout: unknown key, did you mean "timeout"?'),
        ("timeout = true", ":1: timeout: expected 0.1 s to 1 h, as 10, 10s or 2m, found true"),
    ):
        (folder / "config.toml").write_text(text)
        ended = stepctl("config", "show", XDG_CONFIG_HOME=str(tmp_path))
        assert (ended.status, ended.stdout, ended.error) == (78, "", f"{folder}/config.toml{error}")


def test_a_vehicle_goes_by_its_name(stepctl, file_vehicle, parked, tmp_path):
    vehicles = tmp_path / "stepctl/vehicles"
    vehicles.mkdir(parents=True)
    where = {"XDG_CONFIG_HOME": str(tmp_path)}
    none = stepctl("status", **where)
    assert (none.status, none.stdout) == (66, "")
    assert none.error.startswith("vehicle: not given, and none is in ") and "`stepctl config import`" in none.stderr
    shutil.copy(file_vehicle.folder / "vehicle.toml", vehicles / "rolling.toml")
    radio = file_vehicle.radio("left")
    assert stepctl("locate", "--radio", radio, **where).status == 0, "the only one"
    assert stepctl("locate", "--radio", radio, "--vehicle", "rolling", **where).status == 0
    mistyped = stepctl("locate", "--vehicle", "roling", **where)
    assert mistyped.status == 66
    assert mistyped.error.startswith('--vehicle: no vehicle "roling": there is no ')
    assert mistyped.hint == 'did you mean "rolling"?'
    folder = stepctl("locate", "--radio", radio, "--vehicle", file_vehicle.folder.name, folder=file_vehicle.folder.parent)
    assert folder.status == 0, "the vehicle's own folder"
    shutil.copytree(file_vehicle.folder / "riders/alice", vehicles / "second")
    assert stepctl("locate", "--radio", radio, "--vehicle", "second", **where).status == 0, "a rider's folder"
    twice = stepctl("locate", "--radio", radio, **where)
    assert twice.status == 0 and "(second)" in twice.stderr, "one vehicle with two files; one of these has access"
    shutil.copy(parked.folder / "vehicle.toml", vehicles / "other.toml")
    both = b"".join(
        captures.heard(each.uuid, {1: captures.HERE}, tick / 10 + index / 20, 0.1)
        for tick in range(20) for index, each in enumerate((file_vehicle, parked)))
    several = stepctl(
        "locate", "--radio", captures.written(tmp_path / "both.btsnoop", captures.HEADER + both), **where)
    assert several.status == 78, several
    assert several.error == "several of your vehicles are heard: other, rolling, second"
    paths = stepctl("config", "path", "--json", **where)
    assert paths.status == 0
    assert {"path": f"{vehicles}/rolling.toml", "exists": True} in paths.objects
    assert {"path": f"{tmp_path}/stepctl/config.toml", "exists": False} in paths.objects


def test_config_show_names_files_and_no_secrets(stepctl, file_vehicle):
    file = file_vehicle.folder / "riders/alice/vehicle.toml"
    shown = stepctl("config", "show", "--vehicle", file)
    assert (shown.status, shown.stderr) == (0, "")
    assert shown.lines[0].split() == ["vehicle", str(file), "(flag", "--vehicle)"]
    assert f"  rider      alice\n             token {file.parent}/token.jwt\n" in shown.stdout
    assert f"             device key {file.parent}/device.jwk\n" in shown.stdout
    as_json = stepctl("config", "show", "--json", "--vehicle", file).json
    assert as_json["vehicle"] == {"value": str(file), "origin": "flag --vehicle"}
    assert as_json["vehicle_file"].keys() == {"path", "name", "uuid", "steps", "topic", "broker", "rider"}
    assert as_json["vehicle_file"]["rider"] == "alice"


# --- Provisioning ---


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_private_files_are_their_owners_only(file_vehicle):
    modes = {
        str(path.relative_to(file_vehicle.folder)): stat.S_IMODE(path.stat().st_mode)
        for path in file_vehicle.folder.rglob("*")
        if path.is_file() and path.name != "controller.toml"
    }
    public = {"broker.json"}
    private = {name for name in modes if Path(name).suffix in (".jwk", ".key", ".jwt", ".json")} - public
    assert private == {
        "keys/encryption.jwk",
        "keys/signing.jwk",
        "keys/tags.json",
        "operator/ca.key",
        "operator/client.key",
        "operator/ledger.json",
        "operator/token.jwk",
        "tls/broker.key",
        "tls/controller.key",
        "riders/alice/device.jwk",
        "riders/alice/rider.key",
        "riders/alice/token.jwt",
    }
    assert {name: oct(modes[name]) for name in private} == dict.fromkeys(private, "0o600")
    assert {oct(modes[name]) for name in modes.keys() - private} == {"0o644"}
    for folder in ("keys", "operator", "riders", "riders/alice"):
        assert stat.S_IMODE((file_vehicle.folder / folder).stat().st_mode) == 0o700


def test_modes_do_not_depend_on_the_umask(stepctl, tmp_path):
    for umask in ("000", "077"):
        folder = tmp_path / umask
        prefix = ("sh", "-c", f'umask {umask}; exec "$0" "$@"')
        assert stepctl("provision", "vehicle", folder, prefix=prefix).status == 0
        assert stepctl("provision", "token", folder, "--rider", "a", prefix=prefix).status == 0
        for name, mode in (("keys/signing.jwk", 0o600), ("riders/a/token.jwt", 0o600), ("vehicle.toml", 0o644)):
            assert stat.S_IMODE((folder / name).stat().st_mode) == mode
        assert stat.S_IMODE((folder / "operator").stat().st_mode) == 0o700
        shutil.rmtree(folder)


def test_a_vehicle_is_not_overwritten_unless_forced(new_vehicle):
    vehicle = new_vehicle()
    vehicle.rider("alice")
    before = contents(vehicle.folder)
    again = vehicle.stepctl("provision", "vehicle", vehicle.folder)
    assert (again.status, again.stdout) == (1, "")
    assert again.error == f"there is a vehicle in {vehicle.folder}"
    assert contents(vehicle.folder) == before

    vehicle.provision("--force")
    after = contents(vehicle.folder)
    for name in ("keys/signing.jwk", "keys/encryption.jwk", "operator/token.jwk", "tls/ca.pem", "vehicle.toml"):
        assert after[name] != before[name]
    assert not any(name.startswith("riders/") for name in after)
    opened = vehicle.starts_all().rider("alice").moves("open", "left")
    assert opened.status == 0


def test_what_is_cleared_away_is_in_the_folder_whoever_puts_links_there(stepctl, preloaded, tmp_path):
    left, victim = tmp_path / "car/.provisioning/inner", tmp_path / "victim"
    for folder in (left, victim):
        folder.mkdir(parents=True)
        (folder / "file").touch()
    command = ("provision", "vehicle", "car", "--force")
    ended = stepctl(*command, folder=tmp_path, LD_PRELOAD=str(preloaded("swapped")), VICTIM=str(victim))
    assert (ended.status, ended.error) == (74, "cannot open car/.provisioning/inner: Not a directory")
    assert (victim / "file").exists()
    assert stepctl(*command, folder=tmp_path).status == 0
    assert (victim / "file").exists() and not left.parent.exists()


@pytest.mark.parametrize("command", [("vehicle", ""), ("token", "", "--rider", "alice")])
def test_a_folder_without_a_name_is_not_this_one(stepctl, tmp_path, command):
    ended = stepctl("provision", *command, folder=tmp_path)
    assert (ended.status, ended.stdout) == (64, "")
    assert ended.stderr.startswith("stepctl: error: the vehicle's folder has no name\n")
    assert not list(tmp_path.iterdir())


def test_a_rider_is_not_overwritten_unless_forced(new_vehicle):
    vehicle = new_vehicle()
    alice = vehicle.rider("alice")
    before = contents(alice.folder)
    again = vehicle.stepctl("provision", "token", vehicle.folder, "--rider", "alice")
    assert (again.status, again.stdout) == (1, "")
    assert again.error == f"{vehicle.folder}/riders/alice already exists"
    assert contents(alice.folder) == before
    renewed = vehicle.rider("alice", "--force", "--for", "9h")
    after = contents(renewed.folder)
    assert {name for name in after if after[name] != before[name]} - {"rider.pem"} == {"token.jwt"}
    assert vehicle.starts_all() and renewed.moves("open", "left").status == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders to the broker's user")
def test_root_follows_no_link_in_the_place_of_the_brokers_folder(new_vehicle, tmp_path):
    vehicle = new_vehicle()
    others = tmp_path / "others"
    others.mkdir()
    before = others.stat()
    shutil.rmtree(vehicle.folder / "data")
    (vehicle.folder / "data").symlink_to(others)
    os.chown(vehicle.folder / "tls/broker.key", 12345, -1)
    refused = vehicle.stepctl("provision", "relocate", vehicle.folder)
    assert refused.status == 74, refused
    assert (others.stat().st_uid, others.stat().st_mode) == (before.st_uid, before.st_mode)


def test_a_folder_that_was_moved_works_again_when_it_is_relocated(new_vehicle):
    vehicle = new_vehicle()
    vehicle.rider("alice")
    moved = vehicle.folder.with_name("moved")
    vehicle.folder.rename(moved)
    vehicle.folder = moved
    broker = vehicle.starts("mosquitto", "mosquitto", "-c", moved / "mosquitto.conf").ends()
    assert broker.status != 0, "its paths are those of the old place"
    relocated = vehicle.stepctl("provision", "relocate", moved)
    assert (relocated.status, relocated.stdout) == (0, f"rewrote {moved}/mosquitto.conf\n")
    # For root it is mosquitto's, who cannot enter the folders of tests.
    assert relocated.stderr == "" or relocated.stderr.startswith("the broker runs as mosquitto, who may not enter ")
    vehicle.prepares_broker()
    vehicle.starts_all()
    opened = vehicle.rider("bob").moves("open", "left")
    assert (opened.status, opened.stdout) == (0, "the left step is open\n")
    assert vehicle.stepctl("status", "--vehicle", moved / "riders/alice/vehicle.toml").status == 0
    assert vehicle.motions == [("left", "close", "open")]


def test_renewed_certificates_are_taken_up(new_vehicle):
    vehicle = new_vehicle()
    before = contents(vehicle.folder)
    renewed = vehicle.stepctl("provision", "renew", vehicle.folder)
    assert (renewed.status, renewed.stderr) == (0, "")
    assert renewed.stdout.startswith("the certificates of broker and controller end ")
    after = contents(vehicle.folder)
    assert {name for name in after if after[name] != before[name]} == {"tls/broker.pem", "tls/controller.pem"}
    assert vehicle.starts_all().rider("alice").moves("open", "left").status == 0


def test_provisioning_prints_what_it_made_as_json(stepctl, tmp_path):
    folder = tmp_path / "car"
    made = stepctl("provision", "vehicle", folder, "--name", "Rolling Chassis", "--topic", "a/b", "--json")
    assert (made.status, made.stderr) == (0, "")
    assert made.json.keys() == {
        "name", "uuid", "topic", "files", "operator_key", "encryption_key", "signing_key", "certificates_end", "beacons",
        "broker_obstacle",
    }  # fmt: skip
    assert (made.json["name"], made.json["topic"]) == ("Rolling Chassis", "a/b")
    assert all(Path(file).is_file() for file in made.json["files"])
    assert tomllib.loads((folder / "vehicle.toml").read_text())["uuid"] == made.json["uuid"]
    token = stepctl("provision", "token", folder, "--rider", "alice", "--steps", "left", "--for", "30m", "--json")
    assert (token.status, token.stderr) == (0, "")
    assert token.json.keys() == {
        "rider", "vehicle_file", "files", "token", "steps", "not_before", "expires", "device_key"
    }  # fmt: skip
    assert token.json["steps"] == ["left"]
    assert token.json["expires"] - token.json["not_before"] == 1800
    assert all(Path(file).is_file() for file in token.json["files"])


def test_a_name_is_no_longer_than_a_code_can_have(stepctl, tmp_path):
    assert stepctl("provision", "vehicle", "car", "--name", "ä" * 64, folder=tmp_path).status == 0
    assert stepctl("provision", "qr", "--vehicle", tmp_path / "car", "--json").status == 0
    ended = stepctl("provision", "vehicle", "van", "--name", "ä" * 64 + "x", folder=tmp_path)
    assert (ended.status, ended.error) == (64, "a vehicle's name is 1 to 128 bytes of text without control characters")
    assert not (tmp_path / "van").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (["--steps", "roof"], 64, "the vehicle has no step roof: it has left, right"),
        (["--for", "36500d"], 64, None),
        (["--device-key", "nowhere.jwk"], 66, "cannot open nowhere.jwk: No such file or directory"),
    ],
)
def test_a_token_that_cannot_be_is_not_made(file_vehicle, arguments, status, error):
    ended = file_vehicle.stepctl("provision", "token", file_vehicle.folder, "--rider", "bob", *arguments)
    assert (ended.status, ended.stdout) == (status, "")
    assert ended.error == error if error else ended.error.startswith("the token would outlive the vehicle's ")
    assert not (file_vehicle.folder / "riders/bob").exists()


def test_a_token_for_a_folder_that_is_no_vehicle_is_not_made(stepctl, tmp_path):
    ended = stepctl("provision", "token", tmp_path, "--rider", "alice")
    assert (ended.status, ended.stdout) == (66, "")
    assert ended.error == f"cannot open {tmp_path}/vehicle.toml: No such file or directory"
    assert list(tmp_path.iterdir()) == []


def test_a_device_can_keep_its_private_key_to_itself(new_vehicle, tmp_path):
    vehicle = new_vehicle().starts_all()
    device = vehicle.rider("phone")
    jwk = json.loads((device.folder / "device.jwk").read_bytes())
    public = tmp_path / "public.jwk"
    public.write_text(json.dumps({name: value for name, value in jwk.items() if name != "d"}))
    arguments = ["provision", "token", vehicle.folder, "--rider", "hans", "--device-key", public]
    made = vehicle.stepctl(*arguments)
    assert made.status == 0
    folder = vehicle.folder / "riders/hans"
    assert f"{folder}/device.jwk, mode 0600" in made.stderr
    assert not (folder / "device.jwk").exists()
    vehicle.keeps_secret(folder / "token.jwt")
    missing = vehicle.stepctl("status", "--vehicle", folder / "vehicle.toml")
    assert (missing.status, missing.error) == (66, f"cannot open {folder}/device.jwk: No such file or directory")
    shutil.copy(device.folder / "device.jwk", folder)
    assert vehicle.stepctl("status", "--vehicle", folder / "vehicle.toml").status == 0


# --- Files that are none, or too large, or somebody else's ---


@pytest.mark.parametrize("name", ["tls/ca.pem", "tls/controller.key", "tls/controller.pem", "keys/signing.jwk"])
def test_a_pipe_in_place_of_a_file_of_the_controller_is_told_and_not_waited_for(parked, name):
    file = parked.folder / name
    file.unlink()
    os.mkfifo(file, 0o600)
    for arguments in ((), ("--check",)):
        ended = parked.starts("stepd", STEPD, "--config", parked.folder / "stepd.toml", *arguments).ends()
        assert ended.status in (74, 78)
        assert str(file) in ended.error and "not a regular file" in ended.error


@pytest.mark.parametrize("name", ["ca.pem", "rider.key", "rider.pem", "device.jwk", "token.jwt"])
def test_a_pipe_in_place_of_a_file_of_a_rider_is_told_and_not_waited_for(parked, name):
    alice = parked.rider("alice")
    file = alice.folder / name
    file.unlink()
    os.mkfifo(file, 0o600)
    ended = alice.types("status")
    assert ended.status in (74, 78)
    assert str(file) in ended.error and "not a regular file" in ended.error


def test_configuration_that_cannot_be_read_is_told_and_not_passed_over(stepctl, file_vehicle, tmp_path):
    """Whoever knows a vehicle is not told that there is none."""
    folder = tmp_path / "stepctl"
    vehicles = folder / "vehicles"
    shutil.copytree(file_vehicle.folder / "riders/alice", vehicles / "car")
    types = lambda *arguments: stepctl(*arguments, prefix=AS_ANYBODY, XDG_CONFIG_HOME=str(tmp_path))  # noqa: E731
    for closed, subject in ((folder, folder / "config.toml"), (vehicles, vehicles), (vehicles / "car", None)):
        subject = subject or closed / "vehicle.toml"
        closed.chmod(0)
        try:
            for arguments in ((), ("status",), ("locate",), ("config", "show")):
                ended = types(*arguments)
                assert (ended.status, ended.stdout) == (77, ""), arguments
                assert ended.error == f"cannot open {subject}: Permission denied", arguments
            named = types("config", "show", "--vehicle", file_vehicle.folder / "vehicle.toml")
            assert named.status == (77 if closed == folder else 0), "its folder is not looked into"
        finally:
            closed.chmod(0o700)
    vehicles.rename(tmp_path / "moved")
    assert types().status == 0, "a folder that is not there is none"


def test_a_pipe_in_place_of_a_vehicle_file_is_told_and_not_waited_for(stepctl, tmp_path):
    """While it is opened, signals are held back: nothing but a kill would end that."""
    os.mkfifo(tmp_path / "car.toml")
    for command in ("open", "locate", "status", "find"):
        ended = stepctl(command, "--vehicle", tmp_path / "car.toml")
        assert (ended.status, ended.stdout) == (74, "")
        assert ended.error == f"cannot read {tmp_path}/car.toml, which is not a regular file: Invalid argument"
    (tmp_path / "stepctl").mkdir()
    os.mkfifo(tmp_path / "stepctl/config.toml")
    assert stepctl("status", XDG_CONFIG_HOME=str(tmp_path)).status == 74


def test_a_journal_that_is_none_or_too_large_is_told_and_ends_with_65(parked):
    """With which systemd does not start it again and again."""
    journal = parked.folder / "journal.json"
    starts = lambda: parked.starts("stepd", STEPD, "--config", parked.folder / "stepd.toml").ends()  # noqa: E731
    os.mkfifo(journal)
    ended = starts()
    assert ended.status == 65
    assert ended.error.startswith(f"{journal} is damaged: not a regular file; ")
    journal.unlink()
    journal.write_text(" " * 70_000 + "{}")
    ended = starts()
    assert ended.status == 65 and ended.error.startswith(f"{journal} is damaged: larger than 65536 bytes; ")
    assert journal.stat().st_size == 70_002


def test_a_second_controller_does_not_run_though_the_lock_file_is_removed(vehicle, alice):
    (vehicle.folder / "journal.json.lock").unlink()
    second = vehicle.starts("stepd", STEPD, "--config", vehicle.folder / "stepd.toml").ends()
    assert (second.status, second.error) == (69, vehicle.said_to_a_second)
    # The journal is another file after a motion.
    assert alice.moves("open", "left").status == 0
    (vehicle.folder / "journal.json.lock").unlink(missing_ok=True)
    second = vehicle.starts("stepd", STEPD, "--config", vehicle.folder / "stepd.toml").ends()
    assert second.status == 69
    assert vehicle.stepd.lives and vehicle.motions == [("left", "close", "open")]


@pytest.mark.skipif(not AS_ANYBODY, reason="needs root, to start programs that have no capabilities")
def test_nobody_looks_into_the_memory_of_programs_that_hold_keys(parked):
    pipe = parked.folder / "pipe"
    os.mkfifo(pipe)
    controller = parked.starts("stepd", *AS_ANYBODY, STEPD, "--config", parked.folder / "stepd.toml")
    controller.says("; trying again")
    rider = parked.starts("stepctl", *AS_ANYBODY, STEPCTL, "config", "import", pipe)
    for running, program in ((controller, STEPD), (rider, STEPCTL)):
        process = Path(f"/proc/{running.process.pid}")
        wait_until(lambda: Path(os.readlink(process / "exe")) == program.resolve(), f"{program} runs")  # noqa: B023
        limits = process / "limits"
        keeps = lambda: re.search(r"^Max core file size +0 +0 ", limits.read_text(), re.MULTILINE)  # noqa: B023, E731
        wait_until(keeps, "it makes no core dump")
        assert running.lives
        read = subprocess.run([*AS_ANYBODY, "cat", process / "environ"], capture_output=True, text=True)
        assert "Permission denied" in read.stderr, "a debugger needs the same permission"


# --- What keeps strangers from using up the broker ---


def drop_in(vehicle) -> dict[str, str]:
    text = (vehicle.folder / "mosquitto-limits.conf").read_text()
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))


def test_a_thousand_silent_connections_lock_nobody_out_of_a_broker_with_the_limits_of_its_unit(parked):
    limit = drop_in(parked)["LimitNOFILE"]
    prefix = ("prlimit", f"--nofile={limit}:{limit}")
    parked.broker = parked.starts("mosquitto", *prefix, "mosquitto", "-c", parked.folder / "mosquitto.conf")
    parked.broker.says("running")
    parked.starts_stepd()
    alice = parked.rider("alice")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        silent = [socket.create_connection(("localhost", parked.port)) for _ in range(1_100)]
        ended = alice.types("status")
        assert (ended.status, ended.lines) == (0, ["left     closed", "right    closed"])
        for each in silent:
            each.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


FROM_ONE_ADDRESS = """
import socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
subprocess.run(["nft", "-f", sys.argv[1]], check=True)
listener = socket.create_server(("127.0.0.1", int(sys.argv[2])), backlog=100)
made = []
for _ in range(40):
    try:
        made.append(socket.create_connection(listener.getsockname(), timeout=0.3))
    except OSError:
        pass
print(len(made))
"""


@pytest.mark.skipif(
    not shutil.which("nft") or subprocess.run(["unshare", "-n", "nft", "list", "ruleset"], capture_output=True).returncode,
    reason="needs nft(8), ip(8), a kernel with nf_tables, and root",
)
def test_the_firewall_gives_one_address_a_few_connections(parked, tmp_path):
    # What is local is let through otherwise, and a name space has nothing else.
    rules = (parked.folder / "mosquitto.nft").read_text()
    assert 'iifname != "lo"' in rules
    (tmp_path / "rules").write_text(rules.replace('iifname != "lo"', ""))
    command = ["unshare", "-n", sys.executable, "-c", FROM_ONE_ADDRESS, tmp_path / "rules", str(parked.port)]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.stderr == "" and 1 <= int(made.stdout) <= 16
