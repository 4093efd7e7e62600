"""Without a network: riders' links to the vehicle by Bluetooth, in a kernel of their own, on an air with distances.

The rider is Google's Bumble, written from PROTOCOL.md alone (Peers/link.py), or stepctl on an adapter of that kernel.
"""

import json
import os
import signal
import time

import pytest

import stepproto as proto
from links import Air, starts, takes_links
from programs import wait_until
from rig import in_rig
from test_ears import listens
from test_events import Log
from vehicle import Vehicle

pytestmark = in_rig

# A motion that lasts until a test has done what it does meanwhile, on a busy machine too.
SLOW_S = 12.0


@pytest.fixture
def car(new_vehicle) -> Vehicle:
    return takes_links(new_vehicle("car"))


@pytest.fixture
def air(car, tmp_path, request) -> Air:
    return Air(car, tmp_path, peers=getattr(request, "param", 2))


def says(running, patience: float = 60) -> list[dict]:
    """What a peer printed until its end."""
    ended = running.ends(patience)
    assert ended.status == 0, ended
    return [json.loads(line) for line in ended.lines]


@pytest.fixture
def linked(car, air) -> Vehicle:
    """Without any broker."""
    starts(car)
    return car


def test_a_rider_of_another_make_opens_without_a_broker(linked, air):
    alice = linked.rider("alice")
    for position in ("open", "close"):
        (told,) = says(air.peer(0, alice, position))
        assert (told["position"], told["phase"]) == (position, "idle"), told
    assert linked.motions == [("left", "close", "open"), ("left", "open", "close")]


# --- Strangers ---


@pytest.mark.parametrize("what, longest", [("hold", 5.5), ("silent", 4.5), ("trickle", 4.5), ("junk", 4.5)])
def test_a_stranger_hears_nothing_and_holds_nothing_for_long(linked, air, what, longest):
    """The stranger ends no link: it has two because the vehicle ended the first, and stops when that ended the second."""
    alice = linked.rider("alice")
    stranger = air.peer(0, alice, what, "--times", 2, "--seconds", 600)
    told = says(air.peer(1, alice, "unknown", "--times", 5))
    assert [answer["phase"] for answer in told] == ["idle"] * 5
    (*_, end) = says(stranger)
    assert len(end["seconds"]) == 2 and end["heard"] == 0, end
    assert max(end["seconds"]) < longest, end
    assert linked.is_unmoved()


def test_a_recording_moves_nothing_and_is_told_nothing(linked, air, tmp_path):
    alice = linked.rider("alice")
    recording = tmp_path / "recording"
    says(air.peer(0, alice, "open", "--bytes", recording))
    assert recording.stat().st_size > 5000, "a question and a command"
    (*_, end) = says(air.peer(1, alice, "replay", "--bytes", recording, "--times", 2, "--seconds", 600))
    assert end["links"] >= 1 and end["heard"] == 0, end
    assert linked.motions == [("left", "close", "open")]
    # Nor by a stranger who holds on to it while a rider comes.
    (told,) = says(air.peer(0, alice, "close"))
    assert told["position"] == "close"


@pytest.mark.parametrize("air", [5], indirect=True)
def test_silent_strangers_in_all_places_keep_no_rider_out(linked, air):
    alice = linked.rider("alice")
    strangers = [air.peer(number, alice, "silent", "--seconds", 600) for number in range(1, 5)]
    told = says(air.peer(0, alice, "unknown", "--times", 6))
    assert len(told) == 6
    for stranger in strangers:
        assert stranger.lives and '"linked"' in stranger.stdout.read_text(), "the rider came in among them"


def test_the_same_bytes_by_both_ways_move_once(car, air):
    car.starts_broker()
    car.starts_stepd().says("can be found by Bluetooth")
    alice = car.rider("alice")
    positions = ["open", "close"] * 3
    for seed, position in enumerate(positions):
        (told,) = says(air.peer(0, alice, position, "--both", "--seed", seed))
        assert (told["position"], told["phase"]) == (position, "idle"), told
    wait_until(lambda: car.published("left") == len(positions), "each command has come by the network as well")
    assert [motion[2] for motion in car.motions] == positions


def test_a_rider_whom_the_broker_cannot_reach_is_told_by_the_way_that_was_taken(car, air):
    """An answer goes where the command came from, and a change of state to the broker."""
    car.starts_broker()
    car.starts_stepd().says("can be found by Bluetooth")
    alice = car.rider("alice")
    says(air.peer(0, alice, "open"))
    log = car.broker.stderr.read_text()
    status = [line for line in log.splitlines() if "Received PUBLISH" in line and f"'{car.status('left')}'" in line]
    assert status and all("r1" in line for line in status), "retained states, and no answer"


def test_a_notice_travels_with_a_rider_and_only_with_a_rider(linked, air, tmp_path):
    """A vehicle without a network learns of a revocation; an older notice, or a stranger's, changes nothing."""
    alice, bob = linked.rider("alice"), linked.rider("bob")
    operator = linked.key("operator/token")
    revoked = {"jkt": proto.thumbprint(bob.peer.device.public_key()), "until": int(time.time()) + 3600}

    def notice(seq: int, *revocations: dict, key=operator):
        claims = {
            "iat": int(time.time()), "keys": [proto.jwk(operator.public_key())], "revoked": list(revocations),
            "seq": seq, "vehicle": linked.uuid,
        }  # fmt: skip
        (tmp_path / str(seq)).write_text(proto.sign_notice(claims, key))
        return "--notice", tmp_path / str(seq)

    def asks(rider, *arguments):
        (told,) = says(air.peer(0, rider, "unknown", *arguments))
        return told.get("refusal", {}).get("code")

    assert asks(bob, *notice(90, revoked, key=bob.peer.device)) is None, "nobody has to believe a rider"
    assert asks(alice, *notice(100, revoked)) is None
    linked.stepd.says("the operator's notice 100 is in force")
    assert asks(bob) == "token_revoked"
    assert asks(alice, *notice(99)) is None
    assert asks(bob) == "token_revoked", "an older notice takes nothing back"


# --- stepctl ---


@pytest.fixture
def alice(linked):
    return linked.rider("alice")


def test_stepctl_opens_asks_stops_and_closes_without_a_broker(linked, air, alice):
    """With no network at all: the broker's port is closed."""
    via = ("--via", "hci1")
    opened = alice.moves("open", "left", *via, "--json")
    assert opened.status == 0, opened
    assert linked.motions == [("left", "close", "open")]
    asked = alice.types("status", *via)
    assert asked.status == 0 and "left" in asked.stdout, asked
    closed = alice.moves("close", "left", *via)
    assert closed.status == 0, closed
    assert alice.types("stop", *via).status == 0
    assert linked.motions == [("left", "close", "open"), ("left", "open", "close")]


def test_a_motion_is_stopped_by_bluetooth(linked, air, alice):
    linked.edit("stepd.toml", travel_s=SLOW_S, limit_s=2 * SLOW_S)
    linked.stepd.close()
    starts(linked)
    for attempt in range(1, 6):
        opening = alice.starts_to_move("open", "left", "--via", "hci1")
        opening.says("moving")
        (told,) = says(air.peer(0, alice, "stop"))
        ended = opening.ends()
        # A kernel that a busy machine held up for 200 ms has ended the motion before.
        if linked.stepd.stderr.read_text().count("the controller was held up for ") < attempt:
            break
    assert (told["position"], told["phase"], ended.status) == ("unknown", "idle", 6), (told, ended)


def test_where_the_network_is_down_the_radio_is_tried_by_itself(linked, air, alice):
    ended = alice.types("status", "-v", STEPCTL_RADIO="hci1")
    assert ended.status == 0, ended
    assert alice.types("status", "--via", "network", STEPCTL_RADIO="hci1").status == 69
    # The error names both ways.
    air.does("far", 0, 1)
    ended = alice.types("status", STEPCTL_RADIO="hci1")
    assert ended.status == 69 and "by Bluetooth: the vehicle is not heard" in ended.error, ended


def test_errors_are_in_the_words_of_the_field(linked, air, alice):
    air.does("far", 0, 1)
    ended = alice.types("status", "--via", "hci1", "--timeout", "3")
    assert ended.status == 69 and "not heard by Bluetooth" in ended.error, ended
    assert "`stepctl doctor link` says what is wrong" in ended.stderr, ended
    air.does("near", 0, 1)
    linked.stepd.close()
    ended = alice.types("status", "--via", "hci7", "--timeout", "3")
    assert ended.status == 69 and "hci7" in ended.error, ended


def test_a_vehicle_of_another_make_is_found_asked_and_believed(car, air, tmp_path):
    """Bumble is the vehicle; no stepd runs."""
    alice = car.rider("alice")
    vehicle = air.peer(0, alice, "serve", "--folder", car.folder, "--seconds", 40)
    wait_until(lambda: "serving" in vehicle.stdout.read_text(), "a vehicle by Bumble")
    asked = alice.types("status", "--via", "hci1")
    assert asked.status == 0 and "left" in asked.stdout, asked
    for position in ("open", "close"):
        moved = alice.moves(position, "left", "--via", "hci1")
        assert moved.status == 0, moved


def test_walking_out_of_reach_ends_with_a_doubt_and_not_with_a_guess(linked, air, alice):
    linked.edit("stepd.toml", travel_s=SLOW_S, limit_s=2 * SLOW_S)
    linked.stepd.close()
    starts(linked)
    opening = alice.starts_to_move("open", "left", "--via", "hci1")
    opening.says("moving")
    air.does("far", 0, 1)
    ended = opening.ends()
    assert ended.status == 6 and "may have moved" in ended.error, ended
    linked.wait_for_motions(("left", "close", "open"))


def test_a_weak_link_opens_nothing_where_a_strong_one_is_asked_for(car, tmp_path):
    """The vehicle's ears hear the rider at the left step, and the adapter of its links hears the rider from afar."""
    listens(car, {"left": "hci2", "right": "hci3"}.get, proofs=["beacon", "heard"], both=True)
    file = car.folder / "stepd.toml"
    file.write_text(file.read_text().replace("both = true\n", "both = true\nlink_dbm = -70\n"))
    air = Air(car, tmp_path, peers=0, adapters=4)
    for adapter, level in ((0, -85), (2, -50), (3, -80)):
        air.does("rssi", adapter, 1, level)
    starts(car)
    for step in ("left", "right"):
        car.stepd.says(f"{step}: listens with")
    alice = car.rider("alice")
    here = ("--via", "hci1", "--call-radio", "hci1", "--timeout", "30")
    refused = alice.moves("open", "left", *here)
    assert refused.status == 5 and "not_heard" in refused.error, refused
    assert car.is_unmoved()
    air.does("rssi", 0, 1, -50)
    opened = alice.moves("open", "left", *here)
    assert opened.status == 0, opened
    assert car.motions == [("left", "close", "open")]
    # The operator learns why.
    car.starts_broker()
    car.stepd.says("connected to")
    causes = [event.get("cause") for event in Log(car).events() if event["kind"] == "refused"]
    assert causes == ["weak_link"]


# --- One adapter for all ---


@pytest.fixture
def beaming(new_vehicle) -> Vehicle:
    """The vehicle's adapter sends the left step's beacon, too."""
    return takes_links(new_vehicle("car", "--beacon", "left=hci0"))


@pytest.fixture
def parked(beaming, tmp_path) -> Air:
    """With no network, seen by a rider who stands before the left step."""
    air = Air(beaming, tmp_path, peers=2)
    air.does("rssi", 0, 1, -50)
    starts(beaming)
    beaming.stepd.says("left: on the air")
    return air


def test_a_rider_walks_up_and_opens_with_one_adapter_and_no_network(beaming, parked):
    """The adapter that listens for beacons makes the link, on both sides."""
    alice = beaming.rider("alice")
    for position in ("open", "close") * 2:
        ended = alice.types(position, "--radio", "hci1", "--json", "-v")
        assert ended.status == 0, ended
        assert (ended.objects[0]["position"], ended.objects[0]["via"]) == (position, "bluetooth"), ended
        assert "another program" not in ended.stderr, ended
    assert len(beaming.motions) == 4


def test_a_rider_on_the_way_opens_as_soon_as_the_vehicle_is_reached(beaming, parked):
    """That takes longer than anybody waits who stands at a step; and nothing is in reach before."""
    parked.does("far", 0, 1)
    coming = beaming.rider("alice").starts("open", "--radio", "hci1", "-v", "--timeout", "120")
    coming.says("by Bluetooth")
    time.sleep(20)
    assert coming.lives
    parked.does("near", 0, 1)
    ended = coming.ends()
    assert ended.status == 0, ended
    assert beaming.motions == [("left", "close", "open")]


def test_who_stands_at_a_step_is_told_soon_that_no_way_leads_to_the_vehicle(new_vehicle, tmp_path):
    car = new_vehicle("car", "--beacon", "left=hci0")
    Air(car, tmp_path, peers=0).does("rssi", 0, 1, -50)
    car.launches_stepd().says("left: on the air")
    ended = car.rider("alice").types("open", "--radio", "hci1", "--timeout", "120")
    assert ended.status == 69 and "by Bluetooth: the vehicle is not heard" in ended.error, ended
    assert ended.seconds < 30, ended


def test_a_vehicle_that_was_restarted_is_linked_again(beaming, parked):
    """The rider's kernel still has the connection to the address that the vehicle had before."""
    alice = beaming.rider("alice")
    opened = alice.types("open", "--radio", "hci1")
    assert opened.status == 0, opened
    beaming.stepd.kill()
    starts(beaming)
    closed = alice.types("close", "--radio", "hci1")
    # Mostly it takes as long as before; a second or third attempt is no fault.
    assert closed.status == 0 and closed.seconds < 6 * opened.seconds, (opened, closed)


def test_the_doctor_examines_the_link_on_both_sides(beaming, parked):
    alice = beaming.rider("alice")
    ended = alice.types("doctor", "link", "--radio", "hci1", "--json")
    (area,) = ended.json["areas"]
    assert (ended.status, area["area"], area["state"]) == (0, "link", "ok"), ended
    assert [finding["subject"] for finding in area["findings"]] == ["heard", "connection", "answer"], ended
    # Where the vehicle is not heard, that is worth a word only if it was asked for.
    parked.does("far", 0, 1)
    ended = alice.types("doctor", "link", "--radio", "hci1", "--timeout", "2")
    assert ended.status == 69 and "not heard by Bluetooth" in ended.stdout, ended
    ended = alice.types("doctor", "--radio", "hci1", "--timeout", "2", "--json")
    assert "link" not in [area["area"] for area in ended.json["areas"]], ended
    checked = beaming.checks()
    assert checked.status == 0 and "hci0 takes riders' links, beside 1 beacon" in checked.stderr, checked


def test_the_step_opens_while_a_stranger_sits_on_the_link(beaming, parked):
    alice = beaming.rider("alice")
    stranger = parked.peer(0, alice, "hold", "--seconds", 40)
    assert stranger.lives
    ended = alice.types("open", "--radio", "hci1", "--via", "bluetooth")
    assert ended.status == 0, ended


# --- Both ways ---


def test_a_silent_network_is_not_waited_for(car, air):
    """A broker that takes the connection, and then says nothing: what answers first is taken."""
    car.starts_broker()
    car.starts_stepd().says("can be found by Bluetooth")
    alice = car.rider("alice")
    asked = alice.types("status", "--json", STEPCTL_RADIO="hci1")
    assert [told["via"] for told in asked.objects] == ["network"] * 2, asked
    os.kill(car.broker.process.pid, signal.SIGSTOP)
    asked = alice.types("status", "--json", STEPCTL_RADIO="hci1")
    assert [told["via"] for told in asked.objects] == ["bluetooth"] * 2, asked
    stopped = alice.types("stop", "--json", STEPCTL_RADIO="hci1")
    assert stopped.status == 0 and {told["via"] for told in stopped.objects} == {"bluetooth"}, stopped
    os.kill(car.broker.process.pid, signal.SIGCONT)


def test_the_broker_dies_after_the_command_and_the_link_says_what_became_of_it(beaming, tmp_path):
    air = Air(beaming, tmp_path)
    air.does("rssi", 0, 1, -50)
    beaming.edit("stepd.toml", travel_s=SLOW_S, limit_s=2 * SLOW_S)
    beaming.starts_broker()
    beaming.starts_stepd().says("can be found by Bluetooth")
    opening = beaming.rider("alice").starts("open", "--radio", "hci1", "-v")
    opening.says("answer   moving")
    beaming.broker.close()
    ended = opening.ends()
    assert ended.status == 0 and "linked by Bluetooth" in ended.stderr, ended
    assert beaming.motions == [("left", "close", "open")]


def test_the_broker_dies_between_question_and_command_and_the_step_opens_all_the_same(beaming, tmp_path):
    air = Air(beaming, tmp_path)
    air.does("rssi", 0, 1, -90)
    beaming.starts_broker()
    beaming.starts_stepd().says("can be found by Bluetooth")
    opening = beaming.rider("alice").starts("open", "--radio", "hci1", "-v", "--timeout", "30")
    beaming.wait_for_command("left")
    beaming.broker.close()
    opening.says("linked by Bluetooth")
    air.does("rssi", 0, 1, -50)
    ended = opening.ends()
    assert ended.status == 0 and "Bluetooth, straight to the vehicle" in ended.stderr, ended
    assert beaming.motions == [("left", "close", "open")]


def test_a_rider_who_comes_back_into_reach_is_told_how_it_ended(linked, air, alice):
    linked.edit("stepd.toml", travel_s=4.0)
    linked.stepd.close()
    starts(linked)
    opening = alice.starts_to_move("open", "left", "--via", "hci1")
    opening.says("moving")
    air.does("far", 0, 1)
    time.sleep(1)
    air.does("near", 0, 1)
    ended = opening.ends()
    assert ended.status == 0, ended
    assert linked.motions == [("left", "close", "open")]
