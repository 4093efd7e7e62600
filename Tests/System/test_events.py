"""What a vehicle tells its operator: real programs, a broker that is not trusted, and a vehicle that is put back."""

import json
import shutil
import signal
import stat
import time
from contextlib import closing

import pytest

import client
import stepproto as proto
from peers import Connection
from programs import REPOSITORY, STEPCTL, wait_until
from test_find import HASTE, Gpsd, tpv


class Log:
    """`stepctl operator log` of a vehicle with an operator of its own."""

    def __init__(self, vehicle):
        self.vehicle, self.folder = vehicle, vehicle.folder

    def types(self, *arguments):
        return self.vehicle.stepctl("operator", "log", self.folder, *arguments)

    def fetches(self, *arguments) -> list[dict]:
        """All events that are there, and what is wrong with them."""
        ended = self.types("--json", "--lines", "100000", *arguments)
        assert ended.status == 0, ended
        return ended.objects

    def events(self, *arguments) -> list[dict]:
        """The same without notices, of which each fetching leaves one."""
        return [each for each in self.fetches(*arguments) if each.get("kind") != "notice"]

    @property
    def file(self):
        return self.folder / f"operator/events/{self.vehicle.uuid}.jwt"

    @property
    def spool(self):
        return self.folder / "journal.json.events"

    def verifies(self, *findings: str):
        ended = self.types("--verify", "--json")
        assert ended.status == (65 if findings else 0), ended
        assert [each["finding"]["kind"] for each in ended.objects if "finding" in each] == list(findings)


@pytest.fixture
def log(vehicle) -> Log:
    return Log(vehicle)


def kinds(events: list[dict]) -> list[str]:
    return [event.get("kind") or event["finding"]["kind"] for event in events]


def test_the_operator_reads_who_moved_what_and_nobody_else_does(vehicle, alice, log):
    assert alice.moves("open", "left").status == 0
    carol = vehicle.rider("carol", "--steps", "right")
    assert carol.moves("open", "left").status == 5
    started, began, ended, refused = log.events()
    assert (started["kind"], started["seq"]) == ("started", 1)
    assert (began["kind"], began["rider"], began["step"], began["position"]) == ("began", "alice", "left", "open")
    assert (began["method"], began["token"]) == ("beacon", ended["token"])
    assert (ended["kind"], ended["position"], ended["code"]) == ("ended", "open", None)
    assert (refused["rider"], refused["code"], refused["cause"]) == ("carol", "wrong_step", "not_in_token")
    shown = log.types("--lines", "4").stdout
    assert "left: open for alice (beacon, immediate)" in shown and "(not_in_token)" in shown
    # Neither the broker's log nor the vehicle's file has a name.
    for text in (vehicle.broker.stderr.read_text(), log.spool.read_text(), log.file.read_text()):
        assert "alice" not in text and "carol" not in text
    assert {stat.S_IMODE(file.stat().st_mode) for file in (log.file, log.spool)} == {0o600}
    assert stat.S_IMODE((vehicle.folder / "operator/events.jwk").stat().st_mode) == 0o600
    log.verifies()


def test_a_vehicle_tells_where_it_stands_with_what_happens(vehicle, alice, log):
    assert {event["place"] for event in log.events()} == {None}
    with closing(Gpsd([tpv(speed=0.1)] * 50, pause=0.5 * HASTE)) as gpsd:
        file = vehicle.folder / "stepd.toml"
        file.write_text(f'{file.read_text()}\n[place]\ngpsd = "{gpsd.address}"\n')
        vehicle.stepd.close()
        vehicle.starts_stepd()

        def moves_until_it_is_told() -> dict:
            assert alice.moves("open", "left").status == 0
            assert alice.moves("close", "left").status == 0
            (*_, began, ended) = log.events()
            assert (began["kind"], began["place"], ended["kind"]) == ("began", None, "ended")
            return ended["place"]

        place = wait_until(moves_until_it_is_told, "the receiver has settled", pause=3)
        report = tpv()
        assert (place["latitude"], place["longitude"]) == (round(report["lat"], 7), round(report["lon"], 7))
        assert 0 < place["error_m"] <= 50 and 0 <= place["age_s"] <= 60
        # A notice that comes into force tells it, too, and a start that is too early for the receiver does not.
        assert [event["place"] is None for event in log.fetches() if event["kind"] == "notice"][-1] is False
        assert [event["place"] for event in log.events() if event["kind"] == "started"] == [None, None]
        log.verifies()
        # After its last report.
        vehicle.stepd.says("closed the connection; trying again")


@pytest.mark.parametrize("log_file, is_told", [("garmin17n", True), ("bu303b-nofix", False)])
def test_the_place_is_what_gpsd_makes_of_a_receivers_log(vehicle, alice, log, gpsfake, log_file, is_told):
    address = gpsfake(REPOSITORY / f"Tests/Fixtures/gps/{log_file}.log", 0.2)
    file = vehicle.folder / "stepd.toml"
    file.write_text(f'{file.read_text()}\n[place]\ngpsd = "{address}"\n')
    vehicle.stepd.close()
    vehicle.starts_stepd()

    def told_at_the_end():
        assert alice.moves("open", "left").status == 0
        assert alice.moves("close", "left").status == 0
        return log.events()[-1]["place"]

    if is_told:
        place = wait_until(told_at_the_end, "the receiver has settled", pause=3)
        assert place["error_m"] <= 50 and -90 <= place["latitude"] <= 90, place
    else:
        # Longer than a receiver takes that has a fix.
        time.sleep(12)
        assert told_at_the_end() is None


def test_no_more_lines_are_shown_than_a_log_has_room_for(stepctl, tmp_path):
    for lines in ("1000001", "-1"):
        refused = stepctl("operator", "log", tmp_path, f"--lines={lines}")
        assert (refused.status, "--lines takes 0 to 1000000" in refused.error) == (64, True), refused


def test_what_happens_while_nobody_listens_comes_later_and_once(vehicle, alice, log):
    assert kinds(log.fetches()) == ["started", "notice"]
    for _ in range(4):
        assert alice.moves("open", "left").status == 0
        assert alice.moves("close", "left").status == 0
    vehicle.stepd.close()
    vehicle.starts_stepd()
    events = log.events()
    assert kinds(events) == ["started", *["began", "ended"] * 8, "started"]
    sequences = [event["seq"] for event in log.fetches()]
    assert sequences == list(range(1, len(sequences) + 1))
    log.verifies()


def test_follow_shows_an_event_as_it_comes_and_survives_the_broker(vehicle, alice, log):
    running = vehicle.starts("follow", STEPCTL, "operator", "log", log.folder, "--follow", "--json")
    running.says('"started"', file=running.stdout)
    assert alice.moves("open", "left").status == 0
    running.says('"ended"', file=running.stdout)
    vehicle.broker.kill()
    running.says("trying again")
    vehicle.starts_broker()
    said = running.stdout.stat().st_size
    wait_until(lambda: alice.types("status").status == 0, "the vehicle is back")
    assert alice.moves("close", "left").status == 0
    running.says('"ended"', after=said, file=running.stdout)
    second = log.types("--timeout", "2")
    assert second.status == 69 and "is in use by another" in second.error
    running.signal(signal.SIGINT)
    running.ends()
    log.verifies()


def test_a_vehicle_that_does_not_answer_is_named_and_what_is_here_is_shown(vehicle, log):
    log.fetches()
    vehicle.stepd.close()
    ended = log.types("--timeout", "6")
    assert ended.status == 69 and ended.error == "no answer from car"
    assert "the controller has started" in ended.stdout
    other = log.types("truck")
    assert (other.status, other.error) == (64, "truck: not a vehicle of this operator")


def test_a_kill_at_every_write_tells_no_number_twice(parked, preloaded):
    """Before, in the middle of and after each of them, and at each fsync."""
    library = preloaded("cut")
    parked.starts_all()
    alice, log = parked.rider("alice"), Log(parked)
    listens = f"'{parked.status('right')}'".encode()
    log.fetches()
    for at in range(1, 7):
        for mode in ("before", "half", "after"):
            parked.stepd.close()
            before = parked.broker.said
            parked.launches_stepd(LD_PRELOAD=library, CUT="journal.json.events", CUT_AT=at, CUT_MODE=mode)
            wait_until(lambda: not parked.stepd.lives or listens in parked.broker.stderr.read_bytes()[before:], "stepd")  # noqa: B023
            for position in ("open", "close"):
                if parked.stepd.lives:
                    moving = alice.starts_to_move(position, "left", "--timeout", "20")
                    wait_until(lambda: not (moving.lives and parked.stepd.lives), "the step has moved, or stepd has died")  # noqa: B023
                    moving.signal(signal.SIGINT)
                    moving.ends()
            if at <= 4:
                wait_until(lambda: not parked.stepd.lives, f"killed at {at}")
            parked.starts_stepd()
            findings = [each for each in log.fetches() if "finding" in each]
            assert findings == [], (at, mode)
    log.verifies()


def test_a_full_disk_loses_events_says_so_and_moves_steps_all_the_same(parked, preloaded):
    parked.starts_broker()
    before = parked.broker.said
    parked.launches_stepd(LD_PRELOAD=preloaded("cut"), CUT="journal.json.events", CUT_AT=1, CUT_MODE="full")
    parked.broker.says(f"'{parked.status('right')}'", after=before)
    alice, log = parked.rider("alice"), Log(parked)
    assert alice.moves("open", "left").status == 0
    parked.stepd.says("events for the operator are lost")
    assert log.types("--timeout", "2").status == 69
    assert log.spool.read_bytes() == b"", "no half of one"
    parked.stepd.close()
    parked.starts_stepd()
    assert kinds(log.events()) == ["started"]


def test_a_disk_that_does_not_answer_delays_no_motion(parked, preloaded):
    parked.starts_broker()
    before = parked.broker.said
    parked.launches_stepd(LD_PRELOAD=preloaded("slow"), SLOW_WRITE="journal.json.events", SLOW_WRITE_MS=600_000)
    parked.broker.says(f"'{parked.status('right')}'", after=before)
    alice, log = parked.rider("alice"), Log(parked)
    assert alice.moves("open", "left").status == 0
    assert log.spool.read_bytes() == b"", "the step is open, and the disk has not even taken the start"
    parked.stepd.kill()


# --- Attacks ---


def test_a_vehicle_that_is_put_back_tells_a_number_twice_and_that_shows(vehicle, alice, log, tmp_path):
    assert alice.moves("open", "left").status == 0
    log.fetches()
    for name in ("journal.json", "journal.json.events"):
        shutil.copy(vehicle.folder / name, tmp_path / name)
    assert alice.moves("close", "left").status == 0
    log.fetches()
    vehicle.stepd.kill()
    for name in ("journal.json", "journal.json.events"):
        shutil.copy(tmp_path / name, vehicle.folder / name)
    vehicle.starts_stepd()
    ended = log.types()
    assert ended.status == 0 and "sent other events after event" in ended.stderr
    assert "finding" not in json.dumps(log.fetches()), "told once"
    log.verifies("went_back")


def test_a_vehicle_that_lost_its_events_begins_again_and_that_shows(vehicle, log):
    log.fetches()
    vehicle.stepd.kill()
    log.spool.unlink()
    vehicle.starts_stepd()
    assert "begins again after event" in log.types().stderr
    log.verifies("began_again")


def test_a_file_that_is_not_the_controllers_is_put_aside_and_nothing_stands_still(vehicle, alice, log):
    vehicle.stepd.kill()
    log.spool.write_text("rubbish\n")
    vehicle.starts_stepd()
    vehicle.stepd.says("the events begin again")
    assert (vehicle.folder / "journal.json.events.damaged").read_text() == "rubbish\n"
    assert alice.moves("open", "left").status == 0
    assert kinds(log.events()) == ["started", "began", "ended"]


def test_a_stored_event_that_was_changed_is_found(vehicle, alice, log):
    assert alice.moves("open", "left").status == 0
    log.fetches()
    whole = log.file.read_text()
    lines = whole.splitlines()
    for changed, status in (
        (lines[:1] + lines[2:], 65),
        ([lines[0], lines[2], lines[1], *lines[3:]], 65),
        ([lines[0][:-4] + "AAAA", *lines[1:]], 65),
        ([*lines, lines[0]], 0),
        (lines, 0),
    ):
        log.file.write_text("\n".join(changed) + "\n")
        assert log.types("--verify").status == status, changed
    log.file.write_text(whole + "half")
    assert log.types("--verify").status == 0, "cut off by a crash"


@pytest.fixture
def broker(parked):
    """A vehicle whose controller the test plays, as whoever controls the broker can: nothing of stepd runs."""
    parked.starts_broker()
    return parked


class Chain:
    """Events in the vehicle's name, by whoever has a key."""

    def __init__(self, vehicle, key=None):
        self.vehicle, self.key = vehicle, key or vehicle.key("keys/signing")
        self.events: list[str] = []

    def adds(self, kind="began", **members) -> str:
        previous = {"prev": proto.previous_of(self.events)}
        claims = {"vehicle": self.vehicle.uuid, "seq": len(self.events) + 1, "time": 1_800_000_000, "kind": kind}
        self.events.append(proto.sign_event(claims | previous | members, self.key))
        return self.events[-1]


def fetched(vehicle, chosen, *arguments):
    """Runs `operator log` against a broker that delivers what `chosen` makes of a notice's claims."""
    log = Log(vehicle)
    key = vehicle.folder / "operator/events.jwk"
    login = client.Vehicle.read(str(vehicle.controller_file))

    def on_message(message):
        notice = proto.from_json(proto.from_base64url(message.payload.decode().split(".")[1]))
        public = proto.x25519_key(proto.from_base64url(notice["event_key"]))
        assert proto.private_key(json.loads(key.read_bytes())).public_key() == public
        for event in chosen(notice):
            payload = event if isinstance(event, bytes) else proto.seal_event(event, public)
            connection.publish(f"{vehicle.topic}/events", payload)

    with Connection(login, f"{vehicle.topic}/operator", on_message=on_message) as connection:
        return log.types("--json", "--timeout", "8", *arguments)


def test_forged_and_foreign_events_are_ignored(broker):
    honest, mallory = Chain(broker), Chain(broker, proto.Ed25519PrivateKey.generate())
    other = Chain(broker)
    wrong = other.adds(vehicle="00000000-0000-4000-8000-000000000000")

    def chosen(notice):
        if honest.events:
            return []
        return [
            mallory.adds(),
            wrong,
            b"rubbish",
            b"",
            b"\xff" * 5000,
            proto.seal(broker.key("keys/encryption").public_key(), b"not for the operator"),
            honest.adds(),
            honest.adds("notice", notice=notice["seq"]),
        ]

    ended = fetched(broker, chosen)
    assert ended.status == 0 and kinds(ended.objects) == ["began", "notice"]
    assert ended.stderr.count("ignored a message that is not an event of car") == 6


def test_replayed_and_reordered_events_are_put_in_order_once(broker):
    chain = Chain(broker)

    def chosen(notice):
        if chain.events:
            return [chain.adds("notice", notice=notice["seq"]), chain.events[2]]
        for _ in range(4):
            chain.adds()
        chain.adds("notice", notice=notice["seq"])
        return [chain.events[index] for index in (3, 1, 1, 0, 2, 0, 4, 3)]

    ended = fetched(broker, chosen)
    assert ended.status == 0
    assert [event["seq"] for event in ended.objects] == list(range(1, len(chain.events) + 1))
    Log(broker).verifies()


def test_a_broker_that_keeps_an_event_back_is_found_out(broker):
    chain = Chain(broker)

    def chosen(notice):
        if not chain.events:
            for _ in range(4):
                chain.adds()
        chain.adds("notice", notice=notice["seq"])
        acked = notice.get("acked", {}).get("seq", 0)
        return [event for index, event in enumerate(chain.events) if index != 1 and index >= acked]

    ended = fetched(broker, chosen)
    assert ended.status == 0
    gap = next(each["finding"] for each in ended.objects if "finding" in each)
    assert gap == {"kind": "missing", "from": 2, "to": 2}
    Log(broker).verifies("missing")


def test_more_than_a_window_comes_because_the_operator_acknowledges(broker):
    chain = Chain(broker)
    for _ in range(300):
        chain.adds()
    notices = []

    def chosen(notice):
        notices.append(notice)
        chain.adds("notice", notice=notice["seq"])
        acked = notice.get("acked", {"seq": 0})
        if acked["seq"]:
            assert acked["hash"] == proto.digest(chain.events[acked["seq"] - 1].encode())
        return chain.events[acked["seq"] : acked["seq"] + proto.EVENT_WINDOW]

    ended = fetched(broker, chosen)
    assert ended.status == 0
    assert [event["seq"] for event in ended.objects] == list(range(1, len(ended.objects) + 1))
    assert len(ended.objects) > 300 and len(notices) < 20
    Log(broker).verifies()


def test_a_broker_that_keeps_everything_back_is_no_silence_that_counts(broker):
    ended = fetched(broker, lambda notice: [])
    assert (ended.status, ended.error) == (69, "no answer from car")


def test_only_the_controller_may_write_events_and_only_the_operator_hears_them(vehicle, alice, log):
    with Connection(alice.peer, f"{vehicle.topic}/events") as rider:
        assert alice.moves("open", "left").status == 0
        rider.deliver(f"{vehicle.topic}/events", b"a rider's")
        events = log.events()
        assert kinds(events) == ["started", "began", "ended"]
        assert rider.messages.empty()


def test_an_access_list_that_somebody_cut_lets_events_through_after_an_update(parked):
    file = parked.folder / "mosquitto.acl"
    whole = file.read_text()
    file.write_text("".join(line for line in whole.splitlines(True) if "/events" not in line))
    assert file.read_text() != whole
    assert parked.stepctl("provision", "update", parked.folder).status == 0
    assert file.read_text() == whole


# --- Floods and disks ---


def test_a_flood_of_refusals_is_a_line_and_a_number(vehicle, log):
    carol = vehicle.rider("carol", "--steps", "right")
    login = carol.peer
    began = time.monotonic()
    with Connection(login, vehicle.status("left")) as connection:
        for count in range(20, 320, 20):
            # A broker keeps no more for a rider than 50 answers.
            for _ in range(20):
                connection.publish(vehicle.set_position("left"), client.build(login, "left", "unknown").payload)
            wait_until(lambda: connection.messages.qsize() >= count, f"{count} answers")
    refused = [event for event in log.events() if event["kind"] == "refused"]
    # One a minute.
    assert 1 <= len(refused) <= 1 + (time.monotonic() - began) // 60
    assert log.spool.stat().st_size < 5_000


# --- A peer, and the keys ---


def test_the_operator_reads_a_controller_in_python(parked):
    from test_peers import controller, python  # noqa: PLC0415

    parked.starts_broker()
    keys = {name: proto.jwk(parked.key(f"keys/{name}")) for name in ("encryption", "signing")}
    file = parked.folder / "keys/python.json"
    file.write_text(json.dumps(keys | {"operator": proto.jwk(parked.key("operator/token").public_key())}))
    alice = parked.rider("alice")
    before = parked.broker.said
    python(parked, controller, "--vehicle", parked.controller_file, "--keys", file)
    parked.broker.says(f"'{parked.status('right')}'", after=before)
    assert alice.moves("open", "left").status == 0
    log = Log(parked)
    assert kinds(log.events()) == ["began", "ended"]
    assert parked.stepctl("operator", "revoke", parked.folder, "--rider", "alice").status == 0
    wait_until(lambda: alice.types("status").status == 5, "the peer obeys the notice")
    events = log.events()
    assert (events[-1]["kind"], events[-1]["code"]) == ("refused", "token_revoked")
    log.verifies()


def test_an_old_key_is_kept_until_the_vehicle_has_said_that_it_has_the_new_one(vehicle, stepctl, log):
    log.fetches()
    before = vehicle.stepd.said
    assert stepctl("operator", "keys", "rotate", vehicle.folder).status == 0
    vehicle.stepd.says("is in force", after=before)
    log.fetches()
    vehicle.stepd.kill()
    assert stepctl("operator", "keys", "rotate", vehicle.folder).status == 0
    vehicle.keeps_secret(vehicle.folder / "operator/token.jwk")
    kept = stepctl("operator", "keys", "retire", vehicle.folder)
    assert (kept.status, kept.error) == (1, "not known to have the present key: car")
    vehicle.starts_stepd()
    log.fetches()
    assert stepctl("operator", "keys", "retire", vehicle.folder).status == 0


def test_the_key_of_the_events_changes_with_the_others(vehicle, stepctl, log):
    folder = vehicle.folder / "operator"
    log.fetches()
    first = folder.joinpath("events.jwk").read_text()

    def rotates():
        assert stepctl("operator", "keys", "rotate", vehicle.folder).status == 0
        vehicle.keeps_secret(folder / "token.jwk")
        vehicle.keeps_secret(folder / "events.jwk")

    rotates()
    assert folder.joinpath("events.jwk").read_text() == first, "only announced"
    log.fetches()
    # The vehicle hears the second notice later, and tells until then what only the old key opens.
    vehicle.stepd.signal(signal.SIGSTOP)
    rotates()
    old = folder / "events.old.jwk"
    assert old.read_text() == first != folder.joinpath("events.jwk").read_text()
    assert old.stat().st_mode & 0o777 == 0o600
    alice = vehicle.rider("alice")
    vehicle.stepd.signal(signal.SIGCONT)
    # Her token counts as soon as the notice does.
    wait_until(lambda: alice.moves("open", "left", "--timeout", "10").status == 0, "the step opens")
    assert {"began", "ended"} <= set(kinds(log.fetches()))
    assert stepctl("operator", "keys", "retire", vehicle.folder).status == 0
    assert not old.exists()
    assert alice.moves("close", "left").status == 0
    assert kinds(log.events()).count("began") == 2
    log.verifies()


def test_a_vehicle_that_never_sent_an_event_is_named_when_a_key_is_retired(vehicle, stepctl):
    for _ in range(2):
        assert stepctl("operator", "keys", "rotate", vehicle.folder, "--force").status == 0
    vehicle.keeps_secret(vehicle.folder / "operator/token.jwk")
    ended = stepctl("operator", "keys", "retire", vehicle.folder)
    assert ended.status == 0 and "car has never sent an event: it may not know this key" in ended.stderr
