"""A step that waits for a bicycle: stepd with a bridge that is not ours, good, bad, killed and frozen."""

import json
import os
import queue
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from certificates import self_signed
from programs import REPOSITORY, STEPD, children, wait_until
from road import HERE, OWN, Scene, bicycle, frame
from vehicle import Vehicle, free_port

ROAD = Path(__file__).with_name("road.py")
LOGS = REPOSITORY / "Tests/Fixtures/gps"


class Bridge:
    """road.py as a process of its own, which a test can kill, freeze and start again."""

    def __init__(self, vehicle: Vehicle):
        self.vehicle, self.folder, self.port = vehicle, vehicle.folder.parent, free_port()
        self.scene = Scene(self.folder / "scene.json")
        self.scene.shows()
        self.server, self.client = self_signed(self.folder, "localhost"), self_signed(self.folder, "client")

    def starts(self) -> "Bridge":
        self.process = self.vehicle.starts(
            "road", sys.executable, ROAD, self.scene.path, *self.server, self.client[0], self.port)
        self.process.says("listening")
        return self

    def guards(self, port: int | None = None, **keys) -> "Bridge":
        """Writes [guard] into the vehicle's stepd.toml."""
        values = {
            "feed": f"wss://localhost:{port or self.port}/traffic", "ca": str(self.server[0]),
            "cert": str(self.client[0]), "key": str(self.client[1]), "place": "fixed", "latitude": HERE[0],
            "longitude": HERE[1], "heading_deg": 0.0, "length_m": 4.6, "width_m": 1.9,
        } | keys
        lines = [f"{key} = {value!r}".replace("'", '"') for key, value in values.items() if value is not None]
        for step in ("left", "right"):
            lines += [f"[guard.steps.{step}]", "from_m = 1.8", "to_m = 2.8", "reach_m = 0.4"]
        with open(self.vehicle.folder / "stepd.toml", "a") as file:
            file.write("\n[guard]\n" + "\n".join(lines) + "\n")
        return self


@pytest.fixture
def guarded(parked):
    """A vehicle with a bridge, and a rider; stepd sees the road."""

    def start(**keys):
        bridge = Bridge(parked).starts().guards(**keys)
        parked.starts_all()
        rider = parked.rider("alice")
        return parked, bridge, rider

    return start


def watch(rider, step: str = "left") -> str | None:
    asked = rider.types("status", "--json")
    assert asked.status == 0, asked
    return next(line.get("watch") for line in asked.objects if line["step"] == step)


def sees(rider, word: str, patience: float = 60):
    """Waits until the vehicle says that of its left step."""
    wait_until(lambda: watch(rider) == word, f"the guard says {word}", patience)


def meets(bridge: Bridge, rider, seconds: float = 3, **more) -> dict:
    """A bicycle of which the vehicle has just said that it comes. It is near for few seconds, which a busy machine may
    miss: then there is another."""
    def comes():
        passing = bicycle(seconds, **more)
        bridge.scene.shows(passing)
        while time.time() < passing["at"] + seconds:
            if watch(rider) == "approaching":
                return passing
        return None

    return wait_until(comes, "the guard says approaching")


def column(count: int = 40, first: float = 1.0) -> list[dict]:
    """A bicycle every two seconds."""
    return [bicycle(first + 2 * index, id=f"b{index}") for index in range(count)]


def child(vehicle: Vehicle) -> int:
    """The stepctl-traffic of stepd."""
    def found():
        names = {pid: Path(f"/proc/{pid}/comm").read_text().strip() for pid in children(vehicle.stepd.process)}
        return next((pid for pid, name in names.items() if name == "stepctl-traffic"), None)
    return wait_until(found, "stepd has a stepctl-traffic")


# --- A bicycle ---


def test_the_step_waits_for_a_bicycle_and_opens_when_it_has_passed(guarded):
    vehicle, bridge, rider = guarded()
    sees(rider, "clear")
    # A device may move steps ten times a minute.
    for _ in range(5):
        passing = meets(bridge, rider)
        begun = len(vehicle.motions)
        opened = rider.moves("open", "left")
        assert opened.status == 0, opened
        # Its end has left the step by at least a metre of clearance.
        assert vehicle.motions[begun:] == [("left", "close", "open")]
        passed = passing["at"] + 3 + (1.8 + 1) / passing["speed"]
        motion = json.loads((vehicle.folder / "servo.jsonl").read_text().splitlines()[-1])["time_s"]
        assert motion > passed - 0.5, "it opened in front of the bicycle"
        if "traffic" in opened.stderr:
            break
        # On a busy machine the bicycle had passed before the rider's program asked.
        assert rider.moves("close", "left").status == 0
    told = re.search(r"^traffic +a bicycle in ([\d.]+) s; waiting$", opened.stderr, re.MULTILINE)
    assert told and float(told[1]) < 4, opened.stderr
    assert opened.stderr.count("traffic ") == 1 and opened.stderr.count("proof ") == 1
    began = [line for line in vehicle.stepd.stderr.read_text().splitlines() if "open for" in line]
    assert len(began) == sum(target == "open" for _, _, target in vehicle.motions)


def test_at_the_other_side_it_opens_at_once_and_close_never_waits(guarded):
    vehicle, bridge, rider = guarded()
    sees(rider, "clear")
    assert rider.moves("open", "left").status == 0
    bridge.scene.shows(*column())
    sees(rider, "approaching")
    opened = rider.moves("open", "right", at="right")
    assert opened.status == 0 and "traffic" not in opened.stderr
    closed = rider.moves("close", "left")
    assert closed.status == 0 and "traffic" not in closed.stderr


def test_who_has_waited_long_enough_is_told_what_comes(guarded):
    vehicle, bridge, rider = guarded()
    sees(rider, "clear")
    bridge.scene.shows(*column())
    sees(rider, "approaching")
    refused = rider.moves("open", "left", "--wait", "1.2", "--json")
    assert refused.status == 5, refused
    *waits, end = refused.objects
    assert {wait["waiting"] for wait in waits} == {"approaching"}
    assert all(wait["category"] == "bicycle" and 0 <= wait["arrival_s"] <= 4 for wait in waits)
    assert end["outcome"] == "refused" and end["refusal"] == "approaching" and end["retry"] is True
    assert end["category"] == "bicycle"
    at_once = rider.moves("open", "left", "--wait", "0")
    assert at_once.status == 5 and at_once.error == "the vehicle refused (approaching): a bicycle comes towards the step"
    assert vehicle.is_unmoved()


def test_a_step_is_held_before_the_feed_has_begun(guarded):
    """Whoever asks and commands at once would be faster than the feed."""
    vehicle, bridge, rider = guarded()
    # The first is near when the feed has begun; on a busy machine it is the other. Both have passed before a proof of
    # ten seconds is too old.
    bridge.scene.shows(*column(2, first=4))
    opened = rider.moves("open", "left")
    assert opened.status == 0, opened
    assert "not seen yet; waiting" in opened.stderr and "a bicycle in" in opened.stderr
    assert opened.seconds > 4


def test_it_listens_only_while_somebody_asks_and_tells_only_that_bridge_where_it_is(guarded):
    vehicle, bridge, rider = guarded()
    time.sleep(1)
    assert "watches the road" not in vehicle.stepd.stderr.read_text()
    stranger = rider.types("status")
    assert stranger.status == 0
    # stepd says it at a level that systemd's journal has, and a terminal too.
    vehicle.stepd.says("watches the road with wss://localhost")
    assert child(vehicle)


# --- Faults ---


@pytest.mark.parametrize("fault", ["killed", "frozen"])
def test_a_bridge_that_ends_or_freezes_in_an_approach_hides_nothing(guarded, fault):
    vehicle, bridge, rider = guarded()
    sees(rider, "clear")
    # A device may move steps ten times a minute.
    for _ in range(5):
        passing = meets(bridge, rider)
        bridge.process.kill() if fault == "killed" else bridge.process.signal(signal.SIGSTOP)
        held = rider.moves("open", "left", "--wait", "0")
        if held.status == 5 or time.time() < passing["at"] + 3:
            break
        # On a busy machine the bicycle had passed before the rider's program asked.
        bridge.starts() if fault == "killed" else bridge.process.signal(signal.SIGCONT)
        bridge.scene.shows()
        assert rider.moves("close", "left").status == 0
        sees(rider, "clear")
    assert held.status == 5 and "(approaching)" in held.error
    opened = rider.moves("open", "left")
    assert opened.status == 0, opened
    vehicle.stepd.says("left: opens although the traffic guard cannot see the road: the feed is silent")
    vehicle.stepd.says("does not see the road: ")
    assert vehicle.stepd.lives


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
def test_a_child_that_is_killed_or_hangs_makes_the_guard_blind_and_nothing_else(guarded, number):
    vehicle, bridge, rider = guarded()
    sees(rider, "clear")
    first = child(vehicle)
    os.kill(first, number)
    # Another one takes its place after a moment, which a question of the rider may miss.
    vehicle.stepd.says("does not see the road: ")
    assert rider.moves("open", "left").status == 0
    sees(rider, "clear")
    assert child(vehicle) != first
    assert rider.moves("close", "left").status == 0
    vehicle.stepd.signal(signal.SIGTERM)
    assert vehicle.stepd.ends().status == 0
    assert not Path(f"/proc/{first}").exists()


def test_where_the_configuration_says_so_nothing_opens_unseen(guarded):
    vehicle, bridge, rider = guarded(blind="refuse")
    bridge.process.kill()
    refused = rider.moves("open", "left", "--wait", "1")
    assert refused.status == 5, refused
    assert refused.error == "the vehicle refused (blind): it cannot see whether something comes towards the step"
    assert vehicle.is_unmoved()
    bridge.starts()
    assert rider.moves("open", "left", "--wait", "30").status == 0
    bridge.process.kill()
    sees(rider, "blind")
    assert rider.moves("close", "left").status == 0


class HalfOpen:
    """Passes a connection on, until it drops everything without a word, as a network that is gone."""

    def __init__(self, port: int):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port, self.to, self.is_gone = self.server.getsockname()[1], port, False
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                inner, _ = self.server.accept()
                outer = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            for pair in ((inner, outer), (outer, inner)):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(65536):
                if not self.is_gone:
                    sink.sendall(data)
        except OSError:
            pass

    def close(self):
        self.server.close()


def test_a_connection_that_is_half_open_is_noticed_and_made_again(parked):
    bridge = Bridge(parked).starts()
    with closing(HalfOpen(bridge.port)) as network:
        bridge.guards(port=network.port)
        parked.starts_all()
        rider = parked.rider("alice")
        sees(rider, "clear")
        network.is_gone = True
        sees(rider, "blind")
        parked.stepd.says("does not see the road: ")
        network.is_gone = False
        sees(rider, "clear")


@pytest.mark.parametrize("scene, word", [
    ({"late": 1.3}, "blind"), ({"late": -2}, "blind"), ({"stamps": "frozen"}, "blind"),
    ({"stamps": "backward"}, "blind"), ({"clock": 7200}, "clear"),
])
def test_stamps_that_say_nothing_make_it_blind_and_another_clock_does_not(guarded, scene, word):
    vehicle, bridge, rider = guarded()
    bridge.scene.shows(**scene)
    watch(rider)
    # Blind it is at the beginning, too.
    time.sleep(3)
    if word == "blind":
        assert watch(rider) == word
    else:
        sees(rider, word)
    bridge.scene.shows()
    sees(rider, "clear")


@pytest.mark.parametrize("seconds", [2, -2])
def test_a_bridge_whose_clock_steps_never_hides_a_bicycle(guarded, seconds):
    vehicle, bridge, rider = guarded(blind="refuse")
    sees(rider, "clear")
    coming = column()
    bridge.scene.shows(*coming)
    sees(rider, "approaching")
    bridge.scene.shows(*coming, clock=seconds)
    end = time.monotonic() + 5
    while time.monotonic() < end:
        assert watch(rider) in ("approaching", "blind")
    sees(rider, "approaching")


@pytest.mark.parametrize("scene, reason", [
    ({"raw": "{"}, "the feed's frame"), ({"raw": '{"section": 1, "section": 2}'}, "the feed's frame"),
    ({"raw": '{"section": "S", "timestampSecs": NaN}'}, "the feed's frame"),
    ({"raw": "00ff", "binary": True}, "a frame that is not text"),
    ({"raw": "x" * ((1 << 20) + 1)}, "more than 1 MiB"),
], ids=["cut", "twice", "nan", "binary", "long"])
def test_what_is_no_frame_makes_it_blind_and_is_told_in_a_line(guarded, scene, reason):
    vehicle, bridge, rider = guarded()
    bridge.scene.shows(**scene)
    watch(rider)
    vehicle.stepd.says(reason)
    assert watch(rider) == "blind"
    assert rider.moves("open", "left").status == 0
    bridge.scene.shows()
    sees(rider, "clear")


@pytest.mark.parametrize("change, reason", [
    ({"ca": None}, "no connection to the bridge"), ({"cert": None, "key": None}, "the bridge"),
    ({"feed": "wss://127.0.0.1:{port}/traffic"}, "no connection to the bridge"),
    ({"feed": "wss://localhost:1/traffic"}, "no connection to the bridge"),
], ids=["authority", "client", "name", "nobody"])
def test_a_bridge_that_is_not_the_one_or_not_there_is_told_in_a_line(parked, change, reason):
    bridge = Bridge(parked).starts()
    bridge.guards(**{key: value and value.format(port=bridge.port) for key, value in change.items()})
    parked.starts_all()
    rider = parked.rider("alice")
    assert watch(rider) == "blind"
    assert reason in parked.stepd.says("does not see the road: ")
    assert rider.moves("open", "left").status == 0


def stays_shut(vehicle, rider):
    """The guard never says that the road is clear, and a vehicle that opens nothing unseen opens nothing."""
    watch(rider)
    # What has only begun is blind anyway.
    time.sleep(2.5)
    assert {watch(rider) for _ in range(5)} <= {"blind", "approaching"}
    refused = rider.moves("open", "left", "--wait", "0")
    assert refused.status == 5, refused
    assert vehicle.is_unmoved()


def test_axes_that_are_swapped_are_told_and_open_nothing(guarded):
    vehicle, bridge, rider = guarded(axes="lonlat", blind="refuse")
    watch(rider)
    vehicle.stepd.says("everything in the traffic feed is more than 50 km away")
    stays_shut(vehicle, rider)


@pytest.mark.parametrize("objects", [[], [{"category": "car", "ahead": 400, "right": -3, "speed": 8}]])
def test_a_feed_that_shows_nothing_near_the_vehicle_opens_nothing(guarded, objects):
    vehicle, bridge, rider = guarded(blind="refuse")
    bridge.scene.shows(*objects, own=False)
    stays_shut(vehicle, rider)


def test_a_section_that_is_late_is_not_outvoted_by_its_neighbours(guarded):
    vehicle, bridge, rider = guarded(blind="refuse")
    bridge.scene.shows(*column(), late=1.5, others=[{"section": f"S{index}", "objects": []} for index in range(2, 6)])
    stays_shut(vehicle, rider)


def test_another_sections_box_does_not_become_the_vehicle(guarded):
    vehicle, bridge, rider = guarded(place="feed", heading_deg=None, blind="refuse")
    bridge.scene.shows(*column(), others=[{"section": "S3", "objects": [OWN | {"ahead": -7, "right": 6}]}])
    stays_shut(vehicle, rider)


def test_a_bicycle_that_the_feed_calls_a_pedestrian_is_waited_for(guarded):
    vehicle, bridge, rider = guarded()
    sees(rider, "clear")
    meets(bridge, rider, category="pedestrian")


def test_the_vehicle_is_found_in_the_feed_and_two_that_may_be_it_are_one_too_many(guarded):
    vehicle, bridge, rider = guarded(place="feed", heading_deg=None, blind="refuse")
    sees(rider, "clear")
    meets(bridge, rider, 4)
    vehicle.stepd.signal(signal.SIGTERM)
    vehicle.stepd.ends()
    twin = {"id": "twin", "category": "car", "ahead": -6, "right": 0, "length": 4.4, "width": 1.8}
    bridge.scene.shows(twin)
    vehicle.starts_stepd()
    watch(rider)
    time.sleep(2)
    refused = rider.moves("open", "left", "--wait", "0")
    assert refused.status == 5 and "(blind)" in refused.error


class Rough(HalfOpen):
    """Passes a connection on late, and a twentieth of what it carries so much later as sending it again takes."""

    def __init__(self, port: int, delay: tuple[float, float], again: float):
        self.delay, self.again, self.is_rough, self.dice = delay, again, True, random.Random(5)
        super().__init__(port)

    def pump(self, source, sink):
        waiting = queue.Queue()

        def deliver():
            with suppress(OSError):
                while item := waiting.get():
                    time.sleep(max(0, item[0] - time.monotonic()))
                    sink.sendall(item[1])

        threading.Thread(target=deliver, daemon=True).start()
        due = 0.0
        with suppress(OSError):
            while data := source.recv(65536):
                late = self.dice.uniform(*self.delay) + self.again * (self.dice.random() < 0.05) if self.is_rough else 0
                # TCP keeps the order: what is behind something lost waits, too.
                due = max(due, time.monotonic() + late)
                waiting.put((due, data))
        waiting.put(None)


@pytest.mark.parametrize("delay, again, may_see", [((0.03, 0.09), 0.2, True), ((0.15, 0.45), 0.6, False)])
def test_a_connection_that_is_late_and_comes_in_bursts_never_hides_a_bicycle(parked, delay, again, may_see):
    """60 ± 30 ms, and 300 ± 150 ms: 5 % are lost, and come after a round trip."""
    bridge = Bridge(parked).starts()
    with closing(Rough(bridge.port, delay, again)) as network:
        bridge.guards(port=network.port, blind="refuse")
        parked.starts_all()
        rider = parked.rider("alice")
        watch(rider)
        time.sleep(4)
        bridge.scene.shows(*column(first=2))
        if may_see:
            sees(rider, "approaching")
        else:
            time.sleep(2)
        end = time.monotonic() + 8
        while time.monotonic() < end:
            assert watch(rider) in ("approaching", "blind")
        network.is_rough = False
        bridge.scene.shows()
        sees(rider, "clear", 70)


def spoils(what: str, *how: str) -> bool:
    """Whether the kernel takes this for all that this computer says to itself (tc-netem(8))."""
    return subprocess.run(["tc", "qdisc", what, "dev", "lo", "root", *how], capture_output=True).returncode == 0


# Everything else on this computer would suffer, too: the kernel has to be the tests' own.
needs_netem = pytest.mark.skipif(
    not (os.environ.get("STEPCTL_IN_RIG") and spoils("add", "netem", "delay", "1ms") and spoils("del")),
    reason="test_rig.py runs it, in a kernel that has netem")


@needs_netem
def test_a_network_that_turns_bad_in_an_approach_never_hides_a_bicycle(guarded):
    """300 ± 150 ms and 5 % lost, each way, for the feed and for whoever asks."""
    vehicle, bridge, rider = guarded(blind="refuse")
    sees(rider, "clear")
    bridge.scene.shows(*[bicycle(4 + 2 * index, id=f"b{index}") for index in range(40)])
    sees(rider, "approaching", 30)
    assert spoils("add", "netem", "delay", "300ms", "150ms", "loss", "5%")
    try:
        said, start = [], time.monotonic()
        while time.monotonic() < start + 40:
            asked = rider.types("status", "--json", "--timeout", "30")
            assert asked.status == 0, asked
            said.append(next(line.get("watch") for line in asked.objects if line["step"] == "left"))
        # Whether the feed is lost for long enough to be called blind is chance. That the road is never clear is not.
        assert set(said) <= {"approaching", "blind"}, said
        assert len(said) < 40, "each question takes several journeys of 300 ms: the network was not spoiled"
        refused = rider.moves("open", "left", "--wait", "0", "--timeout", "30")
        assert refused.status == 5 and vehicle.motions == [], refused
    finally:
        spoils("del")
    bridge.scene.shows()
    sees(rider, "clear", 90)


# --- Receivers ---


@pytest.mark.parametrize("log, is_seen", [("garmin17n", True), ("bu303-moving", False), ("bu303b-nofix", False)])
def test_the_place_is_what_gpsd_makes_of_a_receivers_log(parked, gpsfake, log, is_seen):
    bridge = Bridge(parked).starts()
    bridge.guards(place="gpsd", gpsd=gpsfake(LOGS / f"{log}.log", 0.2), latitude=None, longitude=None, heading_deg=226.0,
                  blind="refuse")
    parked.starts_all()
    rider = parked.rider("alice")
    if is_seen:
        # The road is somewhere else.
        wait_until(lambda: watch(rider) and "more than 50 km away" in parked.stepd.stderr.read_text(),
                   "the vehicle's place is known")
        assert watch(rider) == "blind"
    else:
        time.sleep(5)
        assert watch(rider) == "blind"
        refused = rider.moves("open", "left", "--wait", "0")
        assert refused.status == 5 and "(blind)" in refused.error
        assert "watches the road" not in parked.stepd.stderr.read_text(), "the bridge was told where it is not"


def test_a_gpsd_that_is_not_there_is_told_once(parked):
    bridge = Bridge(parked).starts()
    bridge.guards(place="gpsd", gpsd="localhost:1", latitude=None, longitude=None, heading_deg=None)
    parked.starts_all()
    parked.stepd.says("cannot connect to gpsd at localhost:1: ")
    time.sleep(3)
    assert parked.stepd.stderr.read_text().count("cannot connect to gpsd") == 1
    assert parked.rider("alice").moves("open", "left").status == 0


# --- Files ---


def test_check_reads_what_the_guard_needs(parked):
    bridge = Bridge(parked).guards()
    assert parked.checks().status == 0
    bridge.client[1].chmod(0o644)
    assert parked.checks().status == 77
    bridge.client[1].chmod(0o600)
    bridge.server[0].unlink()
    missing = parked.checks()
    assert missing.status == 66 and "localhost.pem" in missing.stderr


def test_provision_writes_a_guard_that_check_accepts(stepctl, tmp_path):
    made = stepctl("provision", "vehicle", tmp_path / "car", "--feed", "wss://bridge.example/t", "--at", "48.7,9.1,93.5")
    assert made.status == 0 and "measure the vehicle" in made.stderr
    text = (tmp_path / "car/stepd.toml").read_text()
    assert 'feed = "wss://bridge.example/t"' in text and "heading_deg = 93.5" in text
    told = subprocess.run([STEPD, "--check", "--config", tmp_path / "car/stepd.toml"], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    roaming = stepctl("provision", "vehicle", tmp_path / "bus", "--feed", "wss://bridge.example/t")
    assert roaming.status == 0 and 'place = "gpsd"' in (tmp_path / "bus/stepd.toml").read_text()
    south = stepctl("provision", "vehicle", tmp_path / "south", "--feed", "wss://bridge.example/t", "--at", "-33.9,151.2,90")
    assert south.status == 0 and "latitude = -33.9" in (tmp_path / "south" / "stepd.toml").read_text(), south
    alone = stepctl("provision", "vehicle", tmp_path / "van", "--at", "48.7,9.1,93.5")
    assert alone.status == 64


def test_a_recording_is_played_each_time_somebody_asks(parked):
    bridge = Bridge(parked)
    lines = []
    # One after the other: one is near whenever a busy machine asks. Both pass before a proof of ten seconds is too old.
    passing = [
        {"id": f"b{index}", "category": "bicycle", "ahead": -22 - 8 * index, "right": -1.85, "speed": 4,
         "at": 1_700_000_000} for index in range(2)]
    for index in range(500):
        now = 1_700_000_000 + index / 25
        lines.append(json.dumps({"received": now, "frame": frame({"objects": [OWN, *passing]}, now, now)}))
    (parked.folder / "road.jsonl").write_text("\n".join(lines) + "\n")
    bridge.guards(feed="file:road.jsonl", ca=None, cert=None, key=None)
    parked.starts_all()
    rider = parked.rider("alice")
    sees(rider, "approaching")
    opened = rider.moves("open", "left")
    assert opened.status == 0 and "traffic  a bicycle in" in opened.stderr


# --- The sandbox ---


@pytest.mark.skipif(not shutil.which("strace"), reason="there is no strace")
def test_the_units_filter_lets_the_child_do_all_that_it_does(guarded, tmp_path):
    """systemd kills whoever makes a system call that the unit does not allow."""
    unit = (REPOSITORY / "Sources/Programs/stepd/stepd.service").read_text()
    assert re.findall(r"^SystemCallFilter=(.*)$", unit, re.MULTILINE) == ["@system-service", "~@privileged @resources"]

    def calls(group: str) -> set[str]:
        told = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True).stdout
        words = [line.split("#")[0].strip() for line in told.splitlines()[1:]]
        return set().union(*(calls(word) if word.startswith("@") else {word} for word in words if word))

    allowed = calls("@default") | calls("@system-service") - calls("@privileged") - calls("@resources")
    vehicle, bridge, rider = guarded()
    vehicle.stepd.signal(signal.SIGTERM)
    vehicle.stepd.ends()
    traced = tmp_path / "trace"
    nobody = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"] if os.geteuid() == 0 else []
    if nobody:
        # As the service: a user without privileges.
        subprocess.run(["chown", "-R", "nobody", vehicle.folder.parent], check=True)
        for folder in vehicle.folder.parents:
            if folder.stat().st_mode & 0o1 == 0 and str(folder).startswith(("/tmp", "/root")):
                folder.chmod(folder.stat().st_mode | 0o1)
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]
    before = vehicle.broker.said
    vehicle.stepd = vehicle.starts(
        "stepd", *nobody, "strace", "-f", "-qq", "-o", traced, STEPD, "--config", vehicle.folder / "stepd.toml")
    vehicle.stepd.says("connected to")
    vehicle.broker.says(f"'{vehicle.status('right')}'", after=before)
    sees(rider, "clear")
    assert rider.moves("open", "left").status == 0
    # strace keeps a signal to itself.
    children = subprocess.run(["pgrep", "-P", str(vehicle.stepd.process.pid)], capture_output=True, text=True, check=True)
    for child in children.stdout.split():
        os.kill(int(child), signal.SIGTERM)
    vehicle.stepd.ends()
    made = set(re.findall(r"^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed)", traced.read_text(), re.MULTILINE))
    assert "execve" in made and made - allowed == set()
