"""What the README tells: a rider finds the step, opens that one and no other, and sees how it stands."""

import json
import re
import signal

import pytest

from captures import AWAY, HERE
from peers import Witness
from programs import PATIENCE, wait_until
from vehicle import TRAVEL_S

pytestmark = pytest.mark.arm64


def test_a_rider_opens_and_closes_the_step_in_front_and_no_other(vehicle, alice):
    located = alice.types("locate", "--radio", vehicle.radio("left"))
    assert (located.status, located.lines[-1], located.stderr) == (0, "at the left step", "")

    opened = alice.moves("open", "left")
    assert (opened.status, opened.stdout) == (0, "the left step is open\n")
    chain = [line.split()[0] for line in opened.stderr.splitlines()]
    assert chain == ["proof", "token", "broker", "command", "answer", "answer", "time"]
    assert vehicle.motions == [("left", "close", "open")]

    with Witness(vehicle, alice.peer) as witness:
        kept = witness.kept()
    assert {step: (kept[step]["position"], kept[step]["phase"]) for step in kept} == {
        "left": ("open", "idle"),
        "right": ("close", "idle"),
    }

    refused = alice.moves("open", "right")
    assert (refused.status, refused.stdout) == (4, "")
    assert refused.error == "you are at the left step, not at the right one; no command was sent"
    assert refused.stderr.splitlines()[-1] == "hint: go to the right side, or leave the side out"
    assert vehicle.published("right") <= 1, "the question alone"

    again = alice.moves("open", "left")
    assert (again.status, again.stdout) == (0, "the left step is open\n")
    assert vehicle.motions == [("left", "close", "open")], "a step that is open is not opened again"

    closed = alice.moves("close", "left", "-q")
    assert (closed.status, closed.stdout, closed.stderr) == (0, "the left step is closed\n", "")

    facing = alice.moves("open", "facing", at="right")
    assert (facing.status, facing.stdout) == (0, "the right step is open\n")

    status = alice.types("status")
    assert (status.status, status.lines, status.stderr) == (0, ["left     closed", "right    open"], "")
    assert vehicle.motions == [("left", "close", "open"), ("left", "open", "close"), ("right", "close", "open")]
    assert vehicle.stepd.lives
    log = vehicle.stepd.stderr.read_text()
    assert "left: open for alice" in log and "left: is open" in log


def test_a_watch_sees_what_another_rider_does(vehicle, alice):
    bob = vehicle.rider("bob")
    watch = alice.starts("status", "--watch", "--json")
    states = lambda: [  # noqa: E731
        (line["step"], line["position"], line["phase"])
        for line in map(json.loads, watch.stdout.read_text().splitlines())
    ]
    wait_until(lambda: len(states()) == 2, "both steps' first lines")
    assert bob.moves("open", "right", at="right").status == 0
    wait_until(lambda: ("right", "open", "idle") in states(), "the open step")
    assert states() == [
        ("left", "close", "idle"),
        ("right", "close", "idle"),
        ("right", "close", "moving"),
        ("right", "open", "idle"),
    ]
    watch.signal(signal.SIGINT)
    ended = watch.ends()
    assert (ended.status, ended.stderr) == (-signal.SIGINT, "")


def test_a_watch_says_what_it_sees_in_words(vehicle, alice):
    watch = alice.starts("status", "--watch")
    watch.says("right", file=watch.stdout)
    assert alice.moves("open", "left").status == 0
    watch.says("left     open", file=watch.stdout)
    watch.signal(signal.SIGTERM)
    ended = watch.ends()
    assert ended.status == -signal.SIGTERM
    time = re.compile(r"\d\d:\d\d:\d\d\.\d\d\d  ")
    assert all(time.match(line) for line in ended.lines)
    assert [time.sub("", line) for line in ended.lines] == [
        "left     closed",
        "right    closed",
        "left     moving, was closed",
        "left     open",
    ]


def test_a_watch_goes_on_when_the_controller_starts_anew(vehicle, alice):
    # It shall not say meanwhile that there is no answer.
    watch = alice.starts("status", "--watch", "--json", "--timeout", "60")
    watch.says("right", file=watch.stdout)
    vehicle.stepd.kill()
    vehicle.starts_stepd()
    wait_until(lambda: watch.stdout.read_text().count('"left"') == 2, "the left step again")
    assert vehicle.rider("bob").moves("open", "left").status == 0
    watch.says('"position":"open"', file=watch.stdout)
    watch.signal(signal.SIGINT)
    assert watch.ends().status == -signal.SIGINT
    assert vehicle.motions == [("left", "close", "open")]


def test_a_watch_tells_of_every_step_when_the_controller_starts_anew(parked):
    parked.takes_long()
    parked.starts_all()
    alice = parked.rider("alice")
    watch = alice.starts("status", "--watch")
    watch.says("right", file=watch.stdout)
    alice.starts_to_move("open", "right", at="right").says("moving")
    parked.stepd.kill()
    parked.starts_stepd()
    fault = "right    somewhere between open and closed; fault: interrupted"
    wait_until(lambda: fault in watch.stdout.read_text(), fault)


def test_any_rider_of_a_step_stops_it_on_its_way(parked):
    parked.takes_long(12)
    parked.starts_all()
    alice, bob = parked.rider("alice"), parked.rider("bob")
    opening = alice.starts_to_move("open", "left")
    opening.says("moving")
    stopped = bob.types("stop", "--side", "left")
    rests = "the left step is at rest: somewhere between open and closed"
    assert (stopped.status, stopped.lines) == (0, [rests])
    ended = opening.ends()
    assert (ended.status, ended.error) == (6, "the left step came to rest somewhere between open and closed")
    both = bob.types("stop", "--quiet")
    assert (both.status, sorted(both.lines), both.stderr) == (0, [rests, "the right step is at rest: closed"], "")
    stranger = parked.rider("carol", "--steps", "right").types("stop", "--side", "left", "--json")
    refused = {"outcome": "refused", "step": "left", "refusal": "wrong_step", "retry": False}
    assert (stranger.status, stranger.outcome) == (5, refused)
    assert alice.moves("close", "left").status == 0
    assert parked.motions == [("left", "close", "open"), ("left", "unknown", "close")]


def test_the_rider_who_opens_a_step_turns_it_round(parked):
    parked.takes_long(12)
    parked.starts_all()
    alice = parked.rider("alice")
    opening = alice.starts_to_move("open", "left")
    opening.says("moving")
    closed = alice.moves("close", "left")
    assert (closed.status, closed.stdout) == (0, "the left step is closed\n")
    ended = opening.ends()
    assert (ended.status, ended.error) == (6, "the left step came to rest closed")
    assert ended.stderr.splitlines()[-1].startswith("hint: somebody stopped or reversed it; ")


def test_who_interrupts_a_command_is_told_how_to_stop_the_step(parked):
    parked.takes_long()
    parked.starts_all()
    alice = parked.rider("alice")
    opening = alice.starts_to_move("open", "left")
    opening.says("moving")
    opening.signal(signal.SIGINT)
    ended = opening.ends()
    assert (ended.status, ended.error) == (6, "interrupted after the command was sent: the left step may have moved")
    named = f"--vehicle {alice.file}"
    hint = f"hint: `stepctl stop {named}` stops it, and `stepctl status {named}` says where it is"
    assert ended.stderr.splitlines()[-1] == hint
    assert alice.types("stop").status == 0


def test_a_controller_that_has_left_is_said_to_be_offline(parked):
    parked.starts_all()
    alice = parked.rider("alice")
    parked.stepd.kill()
    asked = alice.types("status", "--timeout", "5")
    assert (asked.status, asked.error) == (69, "the vehicle does not answer; nothing was sent that could move a step")
    assert asked.stderr.splitlines()[-1] == "hint: the broker says that the vehicle's controller is offline"
    # The broker has kept a statement, so a stop can be sent. Nobody obeys it.
    stopped = alice.types("stop", "--side", "left", "--timeout", "5")
    assert (stopped.status, stopped.error) == (6, "no confirmation came in time: the left step may still move")


def test_a_rider_is_told_of_the_steps_that_the_token_is_for(shared_vehicle):
    status = shared_vehicle.rider("carol", "--steps", "right").types("status")
    assert (status.status, status.stdout, status.stderr) == (0, "right    closed\n", "")


def test_a_token_for_none_of_the_steps_is_told(shared_vehicle):
    doris = shared_vehicle.rider("doris", "--steps", "right")
    text = doris.file.read_text()
    doris.file.write_text(text.replace('id = "right"', 'id = "rear"'))
    for more in (), ("--watch",):
        status = doris.types("status", *more)
        assert (status.status, status.stdout) == (78, "")
        assert status.error == f"{doris.folder}/token.jwt: the token is for none of the vehicle's steps"


# --- JSON ---


def test_open_and_close_print_their_outcome_as_json(vehicle, alice):
    opened = alice.moves("open", "left", "--json", "-q")
    assert opened.status == 0 and opened.stderr == ""
    outcome = opened.json
    assert TRAVEL_S <= outcome.pop("duration_s") < PATIENCE
    done = {"outcome": "done", "step": "left", "position": "open", "method": "beacon", "zone": "immediate"}
    assert outcome == done | {"distance_m": outcome["distance_m"], "via": "network"}
    assert alice.moves("close", "left", "--json").json["position"] == "close"

    other_side = alice.moves("open", "right", "--json")
    assert (other_side.status, other_side.outcome) == (4, {"outcome": "other_side", "step": "left", "asked": "right"})
    nowhere = alice.moves("open", "facing", "--json", at="between")
    assert (nowhere.status, nowhere.outcome) == (3, {"outcome": "not_located"})
    assert nowhere.error == "not located: cannot tell yet which step you are at"

    stranger = vehicle.rider("carol", "--steps", "right")
    refused = stranger.moves("open", "left", "--json")
    assert (refused.status, refused.outcome) == (5, {"outcome": "refused", "refusal": "wrong_step", "retry": False})
    assert vehicle.motions == [("left", "close", "open"), ("left", "open", "close")]


def test_status_prints_a_line_of_json_for_each_step(shared_vehicle, shared_rider):
    # On a busy machine it says that it waits.
    status = shared_rider.types("status", "--json", "-q")
    assert (status.status, status.stderr) == (0, "")
    assert [line.keys() for line in status.objects] == [{"time_s", "step", "position", "phase", "fault", "via"}] * 2
    assert [(line["step"], line["position"], line["phase"], line["fault"]) for line in status.objects] == [
        ("left", "close", "idle", None),
        ("right", "close", "idle", None),
    ]
    assert shared_vehicle.is_unmoved()


def test_locate_prints_one_object(shared_vehicle, shared_rider):
    located = shared_rider.types("locate", "--json", "--radio", shared_vehicle.radio("left"))
    assert (located.status, located.stderr) == (0, "")
    report = located.json
    steps = report.pop("steps")
    distances = {"distance_m", "distance_low_m", "distance_high_m"}
    assert report.keys() == {"elapsed_s", "vehicle", "located", "step", "zone", "method"} | distances
    assert (report["vehicle"], report["located"], report["step"]) == (shared_vehicle.uuid, True, "left")
    assert report["method"] == "beacon"
    for step in steps:
        assert step.keys() == {"step", "zone", "rssi_dbm", "packets", "age_s"} | distances
    assert [(step["step"], step["zone"], step["rssi_dbm"]) for step in steps] == [
        ("left", "immediate", HERE),
        ("right", "far", AWAY),
    ]
    between = shared_rider.types("locate", "--json", "--radio", shared_vehicle.radio("between"))
    assert (between.status, between.json["located"], between.json["step"]) == (3, False, None)


def test_locate_watches_at_the_interval_that_was_asked_for(shared_vehicle, shared_rider):
    watched = shared_rider.types(
        "locate", "--watch", "--interval", "0.25", "--json", "--radio", shared_vehicle.radio("left")
    )
    assert watched.status == 0
    times = [report["elapsed_s"] for report in watched.objects]
    assert times[:-1] == [0.25 * tick for tick in range(len(times) - 1)]
    assert [report["located"] for report in watched.objects][-1]


def test_scan_prints_every_frame(shared_vehicle, stepctl):
    scan = stepctl("scan", "--json", "--radio", shared_vehicle.radio("left"))
    assert (scan.status, scan.stderr, len(scan.lines)) == (0, "", 40)
    assert scan.objects[0] == {
        "time_s": 1767225600,
        "address": scan.objects[0]["address"],
        "uuid": shared_vehicle.uuid,
        "major": 1,
        "minor": 1,
        "measured_power_dbm": -59,
        "rssi_dbm": HERE,
    }
    words = stepctl("scan", "--radio", shared_vehicle.radio("left"))
    assert words.lines[0] == f"00:00:00.000  {shared_vehicle.uuid}      1      1   {HERE} dBm   -59"
