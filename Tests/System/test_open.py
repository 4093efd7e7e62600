"""`stepctl open` while a rider walks up: what it says, what it waits for, and what it does without being told."""

import re
import signal
import subprocess
import time
from functools import partial

import pytest

import captures
from adapter import Adapter
from captures import AWAY, HERE
from programs import REPOSITORY, STEPCTL, wait_until
from terminal import LEAVE

FIXTURES = sorted((REPOSITORY / "Tests/Fixtures/captures").glob("*.btsnoop"))
MIDWAY = -67  # dBm: some 2.5 m
PATIENT = ("--timeout", "90")  # for what a test does before it is over


@pytest.fixture
def air(vehicle, tmp_path):
    """What a live radio hears at the left step, until the test says otherwise."""
    with Adapter(tmp_path / "socket", vehicle.uuid, {1: HERE, 2: AWAY}) as adapter:
        yield adapter


@pytest.fixture
def terminal(alice, air, on_terminal):
    def start(*arguments, **more):
        command = [STEPCTL, *arguments, "--vehicle", alice.file, "--radio", air.radio]
        return on_terminal(command, **more)

    return start


# --- One capture, one truth ---


def told(text: str) -> tuple:
    """Zone and metres of a line, each None where it says nothing."""
    zone = re.search(r"\b(immediate|near|far)\b", text)
    metres = re.search(r"([\d.]+) m\b", text)
    return zone and zone[1], metres and metres[1]


def written(report: dict) -> tuple:
    """The same of an object."""
    zone, metres = report["zone"], report["distance_m"]
    return None if zone == "unknown" else zone, None if metres is None else f"{metres + 1e-9:.1f}"


def agree(text: tuple, json: tuple) -> bool:
    """Text has one decimal, JSON two."""
    near = (text[1] is None) == (json[1] is None) and (text[1] is None or abs(float(text[1]) - float(json[1])) < 0.11)
    return text[0] == json[0] and near


def watched(rider, radio) -> list[dict]:
    """Every decision, of which the lines say the same as the objects."""
    lines = rider.types("locate", "--watch", *radio).lines
    decisions = rider.types("locate", "--watch", "--json", *radio).objects
    for line, decision in zip(lines, decisions, strict=True):
        columns = re.findall(r"([ *~])(left|right) +(\S+) +([\d.]+ m|-)", line)
        for (mark, name, zone, metres), step in zip(columns, decision["steps"], strict=True):
            assert name == step["step"] and agree(told(f"{zone} {metres}"), written(step)), (line, step)
            assert (mark != " ") == (name == decision["step"]) and (mark == "*") <= decision["located"], line
        assert ("at the" in line) == decision["located"], line
    return decisions


def compared(vehicle, rider, capture):
    """Runs everything on a capture, and returns what was located, if anything was."""
    radio = ("--radio", f"btsnoop:{capture}")
    words, object_ = rider.types("locate", *radio), rider.types("locate", *radio, "--json")
    opened, opened_object = rider.types("open", *radio), rider.types("open", *radio, "--json")
    located = object_.json
    first = next((each for each in watched(rider, radio) if each["located"]), None)
    assert located["located"] == (first is not None), "what is watched is what is located"
    assert words.status == object_.status == (0 if located["located"] else 3), words
    assert opened.status == opened_object.status == words.status, opened.stderr
    for line, step in zip(words.lines, located["steps"]):
        assert line.split()[0] == step["step"] and agree(told(line), written(step)), (line, step)
    if not located["located"]:
        assert opened.error == words.lines[-1] == opened_object.error
        assert opened_object.outcome == {"outcome": "not_located"}
        return None
    assert {key: located[key] for key in ("step", "zone", "distance_m")} == {
        key: first[key] for key in ("step", "zone", "distance_m")
    }
    assert words.lines[-1] == f"at the {located['step']} step"
    (proof,) = [line for line in opened.stderr.splitlines() if line.startswith("proof ")]
    assert f"at the {located['step']} step: located" in proof
    assert agree(told(proof), written(located)), (proof, located)
    assert {key: opened_object.json[key] for key in ("step", "zone", "distance_m")} == {
        key: located[key] for key in ("step", "zone", "distance_m")
    }
    return located


def identities(stepctl, capture) -> dict[str, list[int]]:
    """The majors of each UUID in a capture, the most heard first."""
    heard: dict[str, dict[int, int]] = {}
    for frame in stepctl("scan", "--json", "--radio", f"btsnoop:{capture}").objects:
        majors = heard.setdefault(frame["uuid"], {})
        majors[frame["major"]] = majors.get(frame["major"], 0) + 1
    return {uuid: sorted(majors, key=majors.get, reverse=True) for uuid, majors in heard.items()}


@pytest.mark.parametrize("capture", FIXTURES, ids=lambda path: path.stem)
def test_text_and_json_of_locate_and_open_say_the_same_of_every_capture(stepctl, new_vehicle, capture):
    for number, (uuid, majors) in enumerate(sorted(identities(stepctl, capture).items())[:3]):
        vehicle = new_vehicle(f"{capture.stem}-{number}", "--uuid", uuid)
        file = vehicle.folder / "vehicle.toml"
        others = [major for major in (1, 2, 3) if major not in majors[:2]]
        left, right = (majors + others)[:2]
        text = file.read_text().replace("major = 1\n", f"major = {left}\n").replace("major = 2\n", f"major = {right}\n")
        file.write_text(text)
        compared(vehicle.starts_all(), vehicle.rider("alice"), capture)


@pytest.mark.arm64
@pytest.mark.parametrize("side", ["left", "right"])
def test_text_and_json_of_locate_and_open_say_the_same_of_walks(vehicle, alice, tmp_path, side):
    walk, located = tmp_path / "walk.btsnoop", 0
    for seed in range(1, 7):
        program = REPOSITORY / "Tests/Demo/walk.py"
        given = ["--uuid", vehicle.uuid, "--side", side, "--seed", str(seed), "--out", walk]
        subprocess.run(["python3", program, *given], check=True)
        located += (compared(vehicle, alice, walk) or {}).get("step") == side
    assert located >= 4


# --- The policy is followed ---


@pytest.fixture
def strict(parked):
    parked.edit("stepd.toml", zone="immediate")
    return parked.starts_all()


def test_it_listens_on_until_the_rider_is_as_near_as_the_vehicle_asks_and_says_what_is_missing(strict, tmp_path):
    alice = strict.rider("alice")
    with Adapter(tmp_path / "socket", strict.uuid, {1: -60, 2: -90}) as air:
        opening = alice.starts("open", "--radio", air.radio, "--timeout", "30")
        line = opening.says("the vehicle asks for less than 0.5 m")
        assert re.fullmatch(r"waiting  left: [\d.]+ m; the vehicle asks for less than 0\.5 m", line)
        assert strict.is_unmoved()
        air.levels = {1: -40, 2: -90}
        ended = opening.ends()
    assert (ended.status, ended.stdout) == (0, "the left step is open\n"), ended.stderr
    assert "located, immediate, 0." in ended.stderr
    assert ended.stderr.count("asks for less than") == 1, "it is said once"


def test_a_rider_who_comes_no_nearer_is_told_how_near_it_has_to_be_and_nothing_is_commanded(strict, tmp_path):
    alice = strict.rider("alice")
    with Adapter(tmp_path / "socket", strict.uuid, {1: -60, 2: -90}) as air:
        ended = alice.types("open", "--radio", air.radio, "--timeout", "3")
    assert (ended.status, ended.stdout) == (3, "")
    assert re.fullmatch(r"not near enough: left: [\d.]+ m; the vehicle asks for less than 0\.5 m", ended.error)
    assert ended.stderr.splitlines()[-1] == "hint: come closer to the step"
    assert strict.is_unmoved() and strict.published("left") <= 2, "a question alone, and another one when its challenge is old"


@pytest.mark.arm64
@pytest.mark.parametrize("seed", range(1, 5))
def test_a_walk_to_the_step_ends_in_the_nearest_zone(strict, tmp_path, seed):
    # On the way and until the zone is sure more time passes than the radio is listened to without a rider at a step.
    walk = tmp_path / "walk.btsnoop"
    given = ["--uuid", strict.uuid, "--stop", "0.25", "--seed", str(seed), "--out", walk]
    subprocess.run(["python3", REPOSITORY / "Tests/Demo/walk.py", *given], check=True)
    ended = strict.rider("alice").types("open", "--radio", f"btsnoop:{walk}")
    assert (ended.status, ended.stdout) == (0, "the left step is open\n"), ended.stderr
    assert "located, immediate, 0." in ended.stderr


def test_a_recording_is_followed_to_where_the_rider_is_near_enough(strict, tmp_path):
    alice = strict.rider("alice")
    walk = captures.HEADER + captures.heard(strict.uuid, {1: -60, 2: -90}, seconds=4)
    walk += captures.heard(strict.uuid, {1: -40, 2: -90}, begin=4, seconds=5)
    near = alice.types("open", "--radio", captures.written(tmp_path / "walk", walk))
    assert (near.status, near.stdout) == (0, "the left step is open\n"), near.stderr
    assert "located, immediate, 0." in near.stderr
    far = captures.HEADER + captures.heard(strict.uuid, {1: -60, 2: -90}, seconds=4)
    ended = alice.types("close", "--radio", captures.written(tmp_path / "far", far))
    assert ended.status == 3 and "the vehicle asks for less than 0.5 m" in ended.error


@pytest.mark.parametrize("rssi, power", [(-45, 0), (-45, 20), (127, -59), (3, -59)])
def test_a_step_whose_beacon_has_no_level_is_not_passed_over(alice, vehicle, tmp_path, rssi, power):
    """The rider stands there. The other step's beacon is the only one with a level."""
    near = captures.reports(captures.frame(vehicle.uuid, 1)[:-1] + power.to_bytes(1, "big", signed=True), rssi, 1)
    other = captures.reports(captures.frame(vehicle.uuid, 2), -57, 2)
    records = [captures.record(packet, tick / 10) for tick in range(60) for packet in (near, other)]
    radio = captures.written(tmp_path / "capture", captures.HEADER + b"".join(records))
    ended = alice.types("open", "--radio", radio)
    assert ended.status == 3 and "the left step's beacon has no known strength" in ended.stderr, ended.stderr
    assert alice.types("locate", "--radio", radio, "--json").status == 3


def test_a_proof_that_the_vehicle_does_not_accept_is_not_sent(parked, tmp_path):
    parked.gains_identifiers(proofs=["nfc"])
    parked.starts_all()
    ended = parked.rider("alice").moves("open", "left")
    assert ended.status == 3
    assert ended.error == "not located: the vehicle does not accept a beacon; it accepts a tag"
    assert parked.is_unmoved()


# --- Listening takes no longer than it must ---


def test_the_vehicle_is_asked_while_the_rider_is_on_the_way(vehicle, alice, air):
    air.levels = {1: -85, 2: -85}
    opening = alice.starts("open", "left", "--radio", air.radio, "--timeout", "30")
    opening.says("waiting ")
    vehicle.wait_for_command("left")
    asked, said = time.monotonic(), vehicle.broker.said
    air.levels = {1: HERE, 2: AWAY}
    ended = opening.ends()
    assert (ended.status, ended.stdout) == (0, "the left step is open\n")
    # A challenge is asked for again when it is six seconds old, as it may become on a busy machine.
    assert 2 <= vehicle.published("left") <= 2 + (time.monotonic() - asked) // 5
    assert "New connection" not in vehicle.broker.stderr.read_text()[said:]


def test_a_challenge_that_grows_old_is_renewed_before_it_is_needed(vehicle, alice, air):
    air.levels = {1: -85, 2: -85}
    opening = alice.starts("open", "left", "--radio", air.radio, "--timeout", "120")
    wait_until(lambda: vehicle.published("left") >= 3, "two more questions")
    air.levels = {1: HERE, 2: AWAY}
    assert opening.ends().status == 0
    assert vehicle.motions == [("left", "close", "open")]


def test_a_broker_that_goes_away_ends_the_way(vehicle, alice, air):
    air.levels = {1: -85, 2: -85}
    opening = alice.starts("open", "--radio", air.radio, "--timeout", "30")
    vehicle.wait_for_command("left")
    vehicle.broker.kill()
    ended = opening.ends()
    assert (ended.status, ended.stdout) == (69, "")
    assert ended.error == f"the connection to the broker localhost:{vehicle.port} was lost"


def test_a_token_out_of_its_times_is_told_before_anything_is_listened_to(vehicle, air):
    dora = vehicle.rider("dora", "--for", "1s")
    time.sleep(1.1)
    ended = dora.types("open", "--radio", air.radio)
    assert ended.status == 5 and "token_expired" in ended.error
    assert ended.stderr.startswith("token    dora: left, right, expired ")
    assert air.scans == 0


# --- Without being told ---


def test_of_several_known_vehicles_the_one_is_meant_that_is_heard(vehicle, alice, new_vehicle, tmp_path):
    other = new_vehicle("van").rider("alice")
    known = tmp_path / "config/stepctl/vehicles"
    known.mkdir(parents=True)
    for name, folder in (("car", alice.folder), ("van", other.folder)):
        (known / name).symlink_to(folder)
    home = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    stepctl, radio = vehicle.stepctl, ("--radio", vehicle.radio("left"))
    opened = stepctl("open", *radio, **home)
    assert (opened.status, opened.stdout) == (0, "the left step is open\n"), opened.stderr
    assert opened.stderr.splitlines()[0] == "vehicle  car (car)"
    assert stepctl("locate", *radio, **home).status == 0
    # Of neither, and of both.
    nobody = captures.written(tmp_path / "nobody", captures.at_the_left(captures.VEHICLE))
    ended = stepctl("open", "--radio", nobody, **home)
    assert (ended.status, ended.error) == (3, "not located: none of the vehicles that you know is heard")
    both = captures.at_the_left(vehicle.uuid) + captures.heard(other.vehicle.uuid, {1: AWAY}, begin=0.5)
    records = captures.written(tmp_path / "both", both)
    # In the order of their times, as a radio hears them.
    ended = stepctl("open", "--radio", records, **home)
    assert (ended.status, ended.stdout) == (78, "") or ended.status == 0
    assert vehicle.stepctl("open", *radio, "--by", "nfc", **home).status == 78


def test_of_several_known_vehicles_the_one_is_meant_that_can_be_opened(vehicle, alice, new_vehicle, tmp_path):
    """Nothing is heard where a step is stopped from afar."""
    known = tmp_path / "config/stepctl/vehicles"
    known.mkdir(parents=True)
    (known / "car").symlink_to(alice.folder)
    van = new_vehicle("van")
    (known / "van.toml").write_text((van.folder / "vehicle.toml").read_text())
    (known / "wreck.toml").write_text("vehicle =")
    stepctl = partial(vehicle.stepctl, XDG_CONFIG_HOME=str(tmp_path / "config"))
    for command in (["stop"], ["stop", "left"], ["status"]):
        assert stepctl(*command).status == 0, command
    assert stepctl("stop", "left", "--side", "right").status == 64
    doctor = stepctl("doctor", "vehicle")
    assert f"({known}/car/vehicle.toml)" in doctor.stdout, doctor
    bare = stepctl()
    assert bare.status == 0, bare
    assert [line.split()[1] for line in bare.stdout.splitlines() if line.startswith("vehicle")] == ["car"]
    assert f"({known}/car/vehicle.toml), and 1 more: stepctl config list" in bare.stdout
    assert [vehicle["state"] for vehicle in stepctl("--json").json["vehicles"]] == ["ready", "no_token"]
    assert f"vehicle  {known}/wreck.toml:1" in bare.stderr
    # Of two nobody knows which is meant.
    other = van.rider("alice")
    (known / "van.toml").unlink()
    (known / "van").symlink_to(other.folder)
    assert stepctl("stop").status == 78
    told = stepctl("--json").json
    assert (told["state"], [vehicle["state"] for vehicle in told["vehicles"]]) == ("ready", ["ready", "ready"])


def test_where_there_is_no_radio_the_other_ways_are_named(vehicle, alice, tmp_path):
    ended = alice.types("open", "--radio", f"h4:unix:{tmp_path}/none")
    assert ended.status == 69
    assert "--by nfc" in ended.stderr.splitlines()[-1] and "--by qr" in ended.stderr.splitlines()[-1]
    assert vehicle.is_unmoved()


# --- On a terminal ---


def test_one_line_changes_while_the_rider_is_led(terminal, vehicle, air):
    air.levels = {1: MIDWAY, 2: AWAY}
    screen = terminal("open", *PATIENT, columns=80)
    screen.waits_for(b" s left")
    air.levels = {1: HERE, 2: AWAY}
    assert screen.ends() == 0
    lines = [part for line in screen.written.decode().split("\r\n") for part in line.split("\r")]
    assert all(len(re.sub(r"\x1b\[[0-9;]*[mK]", "", line)) < 80 for line in lines)
    assert any("left" in line and line.rstrip("\x1b[K").endswith(" s left") for line in lines), lines
    plain = re.sub(r"\x1b\[[0-9;]*[mK]", "", screen.written.decode())
    chain = [words[0] for line in plain[plain.index("proof") :].splitlines() if (words := line.split())]
    assert chain == ["proof", "token", "broker", "command", "answer", "press", "answer", "time", "the"], plain


def test_control_c_in_the_middle_ends_it_and_moves_nothing(terminal, vehicle, air):
    air.levels = {1: MIDWAY, 2: AWAY}
    screen = terminal("open", *PATIENT)
    screen.waits_for(b" s left")
    screen.types(b"\x03")
    assert screen.ends() == -signal.SIGINT
    assert vehicle.is_unmoved()


def test_the_picture_opens_by_itself_and_shows_the_keys(terminal, vehicle, air):
    air.levels = {1: MIDWAY, 2: AWAY}
    screen = terminal("open", "--watch", *PATIENT)
    frame = screen.shows("opens when you are there")
    assert re.search(r"^ o open   c close   s stop   q quit   opens when you are there, \d+ s left$", frame[-1])
    air.levels = {1: HERE, 2: AWAY}
    assert screen.ends() == 0
    assert screen.written.split(LEAVE)[1].decode().splitlines()[-1] == "the left step is open"
    assert vehicle.motions == [("left", "close", "open")]


def test_keys_of_the_picture_open_close_and_quit(terminal, vehicle, air):
    screen = terminal("locate", "--watch")
    screen.shows("ready")
    assert vehicle.is_unmoved()
    screen.types(b"o")
    screen.shows("the left step is open")
    screen.types(b"c")
    screen.shows("the left step is closed")
    screen.types(b"q")
    assert screen.ends() == 0
    assert vehicle.motions == [("left", "close", "open"), ("left", "open", "close")]
    assert screen.shows_what_is_typed, "the terminal is as it was"


@pytest.fixture
def slow(parked):
    """A vehicle whose steps take so long that whatever is typed comes before the end of the motion."""
    parked.takes_long()
    return parked.starts_all()


def at_the_left_step(vehicle, rider, on_terminal, *command):
    return on_terminal([STEPCTL, *command, "--vehicle", rider.file, "--radio", vehicle.radio("left")])


@pytest.mark.parametrize("key", [b"s", b" "], ids=["s", "space"])
@pytest.mark.parametrize("picture", [(), ("--watch",)], ids=["lines", "picture"])
def test_a_key_stops_the_step_during_open(slow, on_terminal, picture, key):
    bob = slow.rider("bob")
    screen = at_the_left_step(slow, slow.rider("alice"), on_terminal, "open", *picture)
    slow.wait_for_motions(("left", "close", "open"))
    screen.types(key)
    # It waits neither for the end of the motion, where the step would be open, nor for a timeout, which it would tell.
    assert screen.ends() == 6
    assert b"you stopped the left step: somewhere between open and closed" in screen.written
    assert screen.shows_what_is_typed, "the terminal is as it was"
    assert bob.types("status").lines[0] == "left     somewhere between open and closed"
    assert slow.motions == [("left", "close", "open")]


@pytest.mark.parametrize("picture", [(), ("--watch",)], ids=["lines", "picture"])
def test_a_key_stops_the_step_after_a_long_way_to_it(slow, on_terminal, tmp_path, picture):
    # The vehicle was asked when the rider set out, and has said nothing since of the other step.
    walk = captures.heard(slow.uuid, {1: AWAY, 2: AWAY}, seconds=4)
    walk += captures.heard(slow.uuid, {1: HERE, 2: AWAY}, begin=4, seconds=10)
    radio = captures.written(tmp_path / "walk", captures.HEADER + walk)
    screen = on_terminal([STEPCTL, "open", *picture, *PATIENT, "--vehicle", slow.rider("alice").file, "--radio", radio])
    screen.waits_for(b"moving")
    time.sleep(1)
    screen.types(b"s")
    assert screen.ends() == 6
    assert b"you stopped the left step: somewhere between open and closed" in screen.written


def test_a_key_stops_before_a_command_and_then_nothing_moves(terminal, vehicle, air):
    air.levels = {1: MIDWAY, 2: AWAY}
    screen = terminal("open", *PATIENT)
    screen.waits_for(b" s left")
    screen.types(b"s")
    assert screen.ends() == 3
    assert b"you stopped it before a command was sent" in screen.written
    assert vehicle.is_unmoved()


def test_a_key_stops_what_another_rider_moves_and_needs_no_place(slow, on_terminal, tmp_path):
    alice, bob = slow.rider("alice"), slow.rider("bob")
    with Adapter(tmp_path / "socket", slow.uuid, {1: AWAY, 2: AWAY}) as far:
        command = [STEPCTL, "locate", "--watch", "--vehicle", bob.file, "--radio", far.radio]
        screen = on_terminal(command)
        screen.shows(" left  in ")
        opening = alice.begins_to_open()
        screen.shows("sliding")
        screen.types(b" ")
        assert opening.ends().status == 6
        screen.shows("stopped: left held, right in")
        screen.shows(" held ")
        screen.types(b"q")
        assert screen.ends() == 0
    assert slow.motions == [("left", "close", "open")]


def test_a_motion_is_seen_moving_and_the_step_is_seen_out(parked, on_terminal):
    parked.takes_long(5)
    screen = at_the_left_step(parked.starts_all(), parked.rider("alice"), on_terminal, "open", "--watch")
    assert screen.ends() == 0, screen.written.decode()
    text = screen.written.decode()
    drawn = [frame for frame in text.split("\x1b[H") if "sliding" in frame]
    assert len(set(drawn)) >= 4, "pictures of the motion differ"
    assert "out " in text.split("\x1b[H")[-1], "the last picture shows the step out"


def test_a_word_that_was_typed_before_stops_nothing(vehicle, alice, on_terminal):
    screen = on_terminal(["sh", "-c", 'sleep 1; exec "$@"', "sh", STEPCTL, "open", "--vehicle", alice.file,
                          "--radio", vehicle.radio("left")])
    screen.types(b"stepctl status\n")
    assert screen.ends() == 0


def test_who_walks_to_the_wrong_side_is_led_to_the_other(terminal, vehicle, air):
    air.levels = {1: MIDWAY, 2: AWAY}
    screen = terminal("open", "right", "--watch", *PATIENT)
    screen.shows("go to the right side")
    air.levels = {1: HERE, 2: AWAY}
    screen.shows("decided: at the left step")
    screen.shows("go to the right side")
    screen.types(b"q")
    assert screen.ends() == 3
    assert vehicle.is_unmoved()


def test_quitting_before_a_command_moves_nothing_and_gives_the_terminal_back(terminal, vehicle, air):
    air.levels = {1: MIDWAY, 2: AWAY}
    screen = terminal("open", "--watch", *PATIENT)
    screen.shows("q quit")
    screen.types(b"q")
    assert screen.ends() == 3
    assert b"ended before a command was sent" in screen.written.split(LEAVE)[1]
    assert vehicle.is_unmoved()


def test_the_vehicle_that_does_not_answer_is_said_to_be_waited_for(vehicle, alice):
    vehicle.stepd.signal(signal.SIGSTOP)
    ended = alice.types("status", "--timeout", "2")
    vehicle.stepd.signal(signal.SIGCONT)
    assert ended.status == 69 and "waiting for the answer of car" in ended.stderr
