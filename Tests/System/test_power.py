"""The power is cut while programs write. What they have promised holds, and each of them can go on without a person.

`disk.py` says what a cut leaves. The cuts come from POWER_SEED, and there are about POWER_CUTS of them in all: `make power`
has 200. What was left by a cut after which something is wrong stays in the test's folder.
"""

import copy
import itertools
import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

import client
import disk
import libnfc
import stepproto as proto
from disk import Disk, Luck
from ntag424 import NTAG424
from peers import Connection, Witness
from programs import STEPD, Running, wait_until
from tags import DYNAMIC_UID
from vehicle import Vehicle, login_file

pytestmark = pytest.mark.skipif(not disk.can_mount(), reason="needs root, /dev/fuse and mfusepy")

SEED = int(os.environ.get("POWER_SEED", "1"))
CUTS = int(os.environ.get("POWER_CUTS", "60"))


@dataclass(frozen=True)
class Left:
    """What a cut left."""

    folder: Path
    # How much of the disk's log there was.
    at: int
    # What kind of a disk it was, and what it was told last.
    name: str

    def drop(self):
        shutil.rmtree(self.folder)


class Power:
    def __init__(self, folder: Path, name: str, stack: ExitStack):
        self._folder, self._stack = folder, stack
        # Not hash(name), which differs between runs.
        self.random = random.Random(f"{SEED} {name}")
        self._count = itertools.count(1)

    def on(self, folder: Path) -> Disk:
        """Puts a folder on a disk: programs are to use `path` of this."""
        made = Disk(folder, self._folder / f"disk{next(self._count)}")
        return self._stack.enter_context(closing(made))

    def cuts(self, disk: Disk, share: float, *moments: int) -> Iterator[Left]:
        """Cuts at any time, each with what it left: as many as this part of all of them, and at each of these moments,
        whatever kind of disk it is."""
        changes = disk.changes()
        sizes = [0, *(size for size, _ in changes)]
        # Much is not on the medium yet when somebody is about to wait for it.
        waits = [size for size, (_, change) in zip(sizes, changes) if change[0].startswith("sync")]
        wanted = [
            (self.random.choice(self.random.choice([sizes, waits])), None) for _ in range(max(3, round(share * CUTS)))
        ]
        wanted += [(moment, kind) for moment in moments for kind in Luck.KINDS]
        wanted.sort(key=lambda cut: cut[0])
        tree, done = disk.before, 0
        for at, kind in wanted:
            while done < len(changes) and changes[done][0] <= at:
                tree.apply(*changes[done][1])
                done += 1
            luck = Luck(random.Random(self.random.random()), kind)
            last = str(changes[done - 1][1])[:80] if done else "nothing"
            left = Left(self._folder / f"left{next(self._count)}", at, f"{luck.kind}, after {last}, seed {SEED}")
            tree.leave(luck, left.folder)
            yield left
            left.drop()


@pytest.fixture
def power(tmp_path, request) -> Iterator[Power]:
    with ExitStack() as stack:
        yield Power(tmp_path, request.node.name, stack)


@pytest.fixture
def home(tmp_path) -> Path:
    """A user's who has nothing yet."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def content(folder: Path) -> dict[str, tuple]:
    """All that is in a folder."""
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        inside = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        mode = None if path.is_symlink() else status.st_mode
        found[str(path.relative_to(folder))] = (inside, mode, status.st_uid, status.st_gid)
    return found


def assert_kept(disk: Disk, left: Left):
    """All of what a program made that has ended."""
    there, here = content(disk.folder), content(left.folder)
    assert {name for name in there if there[name] != here.get(name)} | (here.keys() - there.keys()) == set(), left


# --- A rider's device ---


@pytest.fixture
def types(stepctl):
    """stepctl, of whoever's home is in a folder."""

    def run(home: Path, *arguments, **more):
        return stepctl(*arguments, HOME=str(home), folder=home, **more)

    return run


def device_in(request: str) -> str:
    """Whose request it is: its key."""
    return proto.SignedText.read(request.strip()).header["jwk"]["x"]


def test_a_device_that_has_told_its_key_has_it(power, home, types):
    disk = power.on(home)
    told = device_in(types(disk.path, "enroll", "--name", "anna").stdout)
    after = disk.now
    for left in power.cuts(disk, 0.05, after):
        again = types(left.folder, "enroll", "--name", "anna")
        assert again.status == 0, (left, again)
        assert left.at < after or device_in(again.stdout) == told, left


def test_a_device_that_makes_a_lost_key_anew_has_it(power, home, types):
    assert types(home, "enroll").status == 0
    (home / ".config/stepctl/device/device.jwk").unlink()
    disk = power.on(home)
    told = device_in(types(disk.path, "enroll").stdout)
    after = disk.now
    for left in power.cuts(disk, 0.02, after):
        again = types(left.folder, "enroll")
        assert again.status == 0, (left, again)
        assert left.at < after or device_in(again.stdout) == told, left


@pytest.fixture
def access(vehicle_files, types, home, tmp_path) -> Callable[..., Path]:
    """What the operator has for the device in this home."""
    request = types(home, "enroll", "--name", "anna").stdout
    count = itertools.count(1)

    def grant(*arguments) -> Path:
        file = tmp_path / f"access{next(count)}"
        made = vehicle_files.stepctl(
            "provision", "token", vehicle_files.folder, "--device", "-", "--output", file, *arguments,
            input=request.encode())  # fmt: skip
        assert made.status == 0, made
        return file

    return grant


@pytest.fixture
def vehicle_files(new_vehicle) -> Vehicle:
    return new_vehicle("car")


def known(home: Path, types) -> list[str]:
    """The vehicles there, by name."""
    listed = types(home, "config", "list", "--json")
    assert listed.status == 0, (home, listed)
    return sorted(each["name"] for each in listed.objects)


def test_an_imported_vehicle_stays(power, home, types, access):
    file = access()
    disk = power.on(home)
    assert types(disk.path, "config", "import", file, "--yes").status == 0
    after = disk.now
    for left in power.cuts(disk, 0.05, after):
        if left.at >= after:
            assert_kept(disk, left)
        assert known(left.folder, types) in ([["car"]] if left.at >= after else [[], ["car"]]), left
        again = types(left.folder, "config", "import", file, "--yes")
        assert (again.status, known(left.folder, types)) == (0, ["car"]), (left, again)


def test_a_new_token_stays_and_an_old_one_is_not_lost(power, home, types, access):
    old, new = access(), access("--for", "9h")
    assert types(home, "config", "import", old, "--yes").status == 0

    def token(home: Path) -> str:
        folder = home / ".config/stepctl/vehicles/car"
        table = client.tomllib.loads((folder / "vehicle.toml").read_text())
        for name in ("token", "device_key"):
            assert (folder / table["rider"][name]).exists(), (home, name)
        for name in ("cert", "key", "ca"):
            assert (folder / table["broker"][name]).exists(), (home, name)
        return (folder / table["rider"]["token"]).read_text()

    before = token(home)
    disk = power.on(home)
    assert types(disk.path, "config", "import", new, "--yes").status == 0
    after, told = disk.now, token(disk.path)
    assert told != before
    for left in power.cuts(disk, 0.05, after):
        assert token(left.folder) in ([told] if left.at >= after else [before, told]), left
        again = types(left.folder, "config", "import", new, "--yes")
        assert (again.status, token(left.folder)) == (0, told), (left, again)


def test_a_vehicle_that_was_forgotten_does_not_come_back(power, home, types, access):
    file = access()
    assert types(home, "config", "import", file, "--yes").status == 0
    disk = power.on(home)
    assert types(disk.path, "config", "forget", "car", "--yes").status == 0
    after = disk.now
    for left in power.cuts(disk, 0.05, after):
        assert known(left.folder, types) in ([[]] if left.at >= after else [[], ["car"]]), left
        again = types(left.folder, "config", "import", file, "--yes")
        assert (again.status, known(left.folder, types)) == (0, ["car"]), (left, again)
        kept = list((left.folder / ".config/stepctl/vehicles").rglob("token.jwt"))
        assert left.at < after or len(kept) == 1, (left, "something of the forgotten one is left")


# --- A vehicle's and an operator's files ---


def new_car(types, home: Path, *arguments, **more):
    return types(home, "provision", "vehicle", "car", *arguments, **more)


def assert_whole(types, home: Path, left: Left):
    """Its controller can start, and riders can get tokens."""
    files = client.tomllib.loads((home / "car/stepd.toml").read_text())
    for name in (*files["broker"].values(), files["keys"]["encryption"], files["keys"]["signing"], "mosquitto.conf"):
        assert (home / "car" / name).read_bytes(), (left, name)
    made = types(home, "provision", "token", "car", "--rider", "zoe")
    assert made.status == 0, (left, made)


def completed(types, left: Left, *arguments, name: str = "car"):
    """What was cut off can be typed again, perhaps with the option that the hint names."""
    again = new_car(types, left.folder, *arguments)
    if again.status and "has a vehicle" not in again.error:
        assert "--force" in again.stderr, (left, again)
        again = new_car(types, left.folder, *arguments, "--force", input=f"{name}\n".encode())
        assert again.status == 0, (left, again)


def test_a_vehicle_that_was_made_is_whole(power, home, types):
    disk = power.on(home)
    assert new_car(types, disk.path).status == 0
    after = disk.now
    for left in power.cuts(disk, 0.08, after):
        if left.at < after:
            completed(types, left)
        else:
            assert_kept(disk, left)
        assert_whole(types, left.folder, left)


def test_a_vehicle_that_is_replaced_is_kept(power, home, types):
    assert new_car(types, home).status == 0
    old = (home / "car/operator/ca.key").read_text()
    disk = power.on(home)
    assert new_car(types, disk.path, "--force", input=b"car\n").status == 0
    after = disk.now
    for left in power.cuts(disk, 0.05, after):
        kept = [file.read_text() for file in (left.folder / "car").rglob("ca.key")]
        assert old in kept, left
        if left.at >= after:
            assert_kept(disk, left)
        else:
            completed(types, left)
            assert old in [file.read_text() for file in (left.folder / "car").rglob("ca.key")], left
        assert_whole(types, left.folder, left)


def test_keys_that_were_told_to_an_operator_are_there(power, home, types):
    disk = power.on(home)
    made = types(disk.path, "provision", "keys", "car")
    assert made.status == 0
    after, told = disk.now, proto.SignedText.read(made.stdout.strip()).header["jwk"]["x"]
    for left in power.cuts(disk, 0.04, after):
        again = types(left.folder, "provision", "keys", "car")
        if left.at < after and again.status:
            # The hint is to remove what nobody was told of.
            assert "remove" in again.stderr, (left, again)
            shutil.rmtree(left.folder / "car")
            again = types(left.folder, "provision", "keys", "car")
        assert again.status == 0, (left, again)
        assert left.at < after or proto.SignedText.read(again.stdout.strip()).header["jwk"]["x"] == told, left


def test_an_operator_that_was_made_is_whole(power, home, types):
    disk = power.on(home)
    assert types(disk.path, "operator", "init", "fleet").status == 0
    after = disk.now
    for left in power.cuts(disk, 0.05, after):
        again = types(left.folder, "operator", "init", "fleet")
        if left.at >= after:
            assert again.status != 0, left
            assert_kept(disk, left)
        elif again.status and not (left.folder / "fleet/operator").exists():
            # Of a run that was interrupted nothing was told.
            assert "remove" in again.stderr, (left, again)
            shutil.rmtree(left.folder / ".fleet.new")
            shutil.rmtree(left.folder / "fleet", ignore_errors=True)
            assert types(left.folder, "operator", "init", "fleet").status == 0, left
        made = new_car(types, left.folder, "--operator", "fleet")
        assert made.status == 0, (left, made)
        made = types(left.folder, "provision", "token", "fleet/vehicles/car", "--rider", "zoe")
        assert made.status == 0, (left, made)


def test_a_new_vehicle_of_an_operator_is_whole(power, home, types):
    assert types(home, "operator", "init", "fleet").status == 0
    disk = power.on(home)
    assert new_car(types, disk.path, "--operator", "fleet").status == 0
    after = disk.now
    for left in power.cuts(disk, 0.05, after):
        assert types(left.folder, "operator", "vehicles", "fleet").status == 0, left
        if left.at < after:
            completed(types, left, "--operator", "fleet")
        else:
            assert_kept(disk, left)
        made = types(left.folder, "provision", "token", "fleet/vehicles/car", "--rider", "zoe")
        assert made.status == 0, (left, made)


def issued(types, home: Path, left: Left | None = None) -> set[str]:
    listed = types(home, "operator", "tokens", "car", "--json")
    assert listed.status == 0, (left, listed)
    return {each["token"] for each in listed.objects}


def claims_in(signed: str) -> dict:
    """What was signed, whoever has signed it."""
    return proto.from_json(proto.from_base64url(signed.split(".")[1]))


def token_in(file: Path) -> str:
    return claims_in(file.read_text())["jti"]


def test_a_rider_who_was_made_is_whole_and_in_the_ledger(power, home, types):
    assert new_car(types, home).status == 0
    disk = power.on(home)
    assert types(disk.path, "provision", "token", "car", "--rider", "alice").status == 0
    after, token = disk.now, "car/riders/alice/token.jwt"
    for left in power.cuts(disk, 0.05, after):
        if left.at < after:
            again = types(left.folder, "provision", "token", "car", "--rider", "alice", "--force")
            assert again.status == 0, (left, again)
        else:
            assert_kept(disk, left)
        assert token_in(left.folder / token) in issued(types, left.folder, left), left
        imported = types(left.folder, "config", "import", "car/riders/alice/vehicle.toml", "--yes")
        assert imported.status == 0, (left, imported)


def test_an_access_that_was_written_is_there_and_in_the_ledger(power, home, types, tmp_path):
    assert new_car(types, home).status == 0
    request = types(home, "enroll", "--name", "anna").stdout.encode()
    disk = power.on(home)
    arguments = ("provision", "token", "car", "--device", "-", "--output", "access")
    assert types(disk.path, *arguments, input=request).status == 0
    after, told = disk.now, (disk.path / "access").read_text()
    for left in power.cuts(disk, 0.05, after):
        if left.at >= after:
            assert (left.folder / "access").read_text() == told, left
            assert len(issued(types, left.folder, left)) == 1, left
        else:
            assert types(left.folder, *arguments, input=request).status == 0, left


@pytest.fixture
def fleet(vehicle, home, types):
    """A vehicle that runs, with two riders, and its operator's folder in a home."""
    for name in ("alice", "bob"):
        vehicle.rider(name)
    shutil.copytree(vehicle.folder, home / "car", symlinks=True)
    return vehicle


class Notices:
    """The operator's notices, as the broker got them, and how much of the disk's log there was then."""

    def __init__(self, vehicle, disk: Disk):
        self._disk, self.seen = disk, []
        login = client.Vehicle.read(str(vehicle.controller_file))
        self._connection = Connection(login, f"{vehicle.topic}/operator", on_message=self._see)

    def _see(self, message):
        now = self._disk.now
        self.seen.append((now, claims_in(message.payload.decode())))

    def __enter__(self) -> "Notices":
        self._connection.__enter__()
        return self

    def __exit__(self, *_):
        self._connection.__exit__()

    def before(self, at: int) -> list[dict]:
        """Those that had been sent."""
        return [claims for when, claims in self.seen if when <= at]


def sequence(home: Path) -> int:
    """Of the operator's last notice, as its ledger has it."""
    return json.loads((home / "car/operator/ledger.json").read_text())["seq"]


def test_what_was_revoked_stays_revoked_and_no_number_is_used_twice(power, home, types, fleet):
    disk = power.on(home)
    alice, bob = (token_in(fleet.folder / f"riders/{name}/token.jwt") for name in ("alice", "bob"))
    with Notices(fleet, disk) as notices:
        for name in ("alice", "bob"):
            assert types(disk.path, "operator", "revoke", "car", "--rider", name).status == 0
        wait_until(lambda: len(notices.seen) >= 2, "the notices")
    after = disk.now
    for left in power.cuts(disk, 0.06, after, *(when for when, _ in notices.seen)):
        sent = notices.before(left.at)
        assert sequence(left.folder) >= max((notice["seq"] for notice in sent), default=0), left
        told = {each.get("jti") for notice in sent for each in notice["revoked"]}
        assert {alice, bob} == told or left.at < after
        valid = issued(types, left.folder, left)
        assert not told & valid, left
        if left.at < after:
            again = types(left.folder, "operator", "revoke", "car", "--rider", "bob", "--timeout", "0.1")
            assert again.status in (0, 69), (left, again)


def test_the_change_of_keys_goes_on(power, home, types, fleet):
    """A key that a vehicle or a rider was told of is there, and the change comes to its end."""
    car = home / "car"
    steps = (
        ("operator", "keys", "rotate", "car"),
        ("operator", "log", "car"),
        ("operator", "keys", "rotate", "car"),
        ("operator", "log", "car"),
        ("provision", "token", "car", "--rider", "alice", "--force"),
        ("provision", "token", "car", "--rider", "bob", "--force"),
        ("operator", "keys", "retire", "car"),
    )
    assert types(home, "operator", "log", "car").status == 0 and car.exists()
    disk = power.on(home)
    with Notices(fleet, disk) as notices:
        moments = []
        for step in steps:
            ended = types(disk.path, *step)
            assert ended.status == 0, ended
            moments.append(disk.now)
    for left in power.cuts(disk, 0.1, *moments):
        operator = left.folder / "car/operator"
        sent = notices.before(left.at)
        assert sequence(left.folder) >= max((notice["seq"] for notice in sent), default=0), left
        listed = types(left.folder, "operator", "keys", "show", "car", "--json")
        assert listed.status == 0, (left, listed)
        here = {each["key"] for each in listed.objects}
        if sent:
            # Whatever counts is here, but for a key that was about to be taken away.
            counting = {proto.thumbprint(proto.ed25519_key(proto.from_base64url(key["x"]))) for key in sent[-1]["keys"]}
            assert counting <= here or left.at > moments[-2], left
        if left.at >= moments[-1]:
            assert not (operator / "previous.jwk").exists(), left
        made = types(left.folder, "provision", "token", "car", "--rider", "carol")
        assert made.status == 0, (left, made)


def test_events_that_were_acknowledged_are_here(power, home, types, fleet):
    alice = fleet.rider("zoe")
    disk = power.on(home)
    with Notices(fleet, disk) as notices:
        for position in ("open", "close", "open"):
            assert alice.moves(position, "left").status == 0
            ended = types(disk.path, "operator", "log", "car")
            assert ended.status == 0, ended
    after = disk.now
    archive = f"car/operator/events/{fleet.uuid}.jwt"
    last = max(notice["acked"]["seq"] for notice in notices.before(after) if "acked" in notice)
    assert last > 5
    for left in power.cuts(disk, 0.1, after, *(when for when, notice in notices.seen if "acked" in notice)):
        acked = max((notice["acked"]["seq"] for notice in notices.before(left.at) if "acked" in notice), default=0)
        verified = types(left.folder, "operator", "log", "car", "--verify", "--json")
        assert verified.status == 0, (left, verified)
        file = left.folder / archive
        if acked:
            # A line without its end was being written: the next to write takes it away.
            *lines, _ = file.read_text(errors="replace").split("\n")
            here = [claims_in(line)["seq"] for line in lines if "\0" not in line]
            assert max(here, default=0) >= acked, left
        # What follows can be added, and acknowledged.
        again = types(left.folder, "operator", "publish", "car", "--timeout", "0.5")
        assert again.status in (0, 69), (left, again)


# --- Certificates and addresses ---


def named_in(folder: Path, name: str) -> x509.Certificate:
    """A certificate of a vehicle's folder, which is for the key beside it and from the authority."""
    certificate = x509.load_pem_x509_certificate((folder / f"{name}.pem").read_bytes())
    key = load_pem_private_key((folder / f"{name}.key").read_bytes(), None)
    assert certificate.public_key() == key.public_key(), (folder, name)
    authority = folder / ("ca.pem" if name == "rider" else "../tls/ca.pem")
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.read_bytes()))
    return certificate


def assert_starts(types, home: Path, left: Left):
    """Broker, controller and rider can still prove who they are, and the controller's files are whole."""
    car = home / "car"
    for folder, name in (("tls", "broker"), ("tls", "controller"), ("operator", "client"), ("riders/alice", "rider")):
        named_in(car / folder, name)
    assert token_in(car / "riders/alice/token.jwt") in issued(types, home, left), left
    checked = subprocess.run([STEPD, "--check", "--config", car / "stepd.toml"], capture_output=True, text=True)
    assert checked.returncode == 0, (left, checked)


HOST = "car.example"


@pytest.mark.parametrize(
    "command",
    [("operator", "renew", "car", "--within", "900d"), ("provision", "renew", "car"), ("provision", "update", "car")],
    ids=" ".join,
)
def test_what_is_brought_up_to_date_is_each_files_former_content_or_its_new_one(power, home, types, command):
    assert new_car(types, home).status == 0
    assert types(home, "provision", "token", "car", "--rider", "alice").status == 0
    moves = "update" in command
    if moves:
        file = home / "car/vehicle.toml"
        file.write_text(file.read_text().replace('host = "localhost"', f'host = "{HOST}"'))
    before = content(home)
    disk = power.on(home)
    assert types(disk.path, *command).status == 0
    after, done = disk.now, content(home)
    changed = {name for name in done if done[name] != before.get(name)}
    assert "car/tls/broker.pem" in changed
    for left in power.cuts(disk, 0.05, after):
        here = content(left.folder)
        if left.at >= after:
            assert_kept(disk, left)
        for name in before.keys() | changed:
            assert here.get(name) in (before.get(name), done.get(name)), (left, name)
        assert_starts(types, left.folder, left)
        # What was cut off is completed by the same command.
        again = types(left.folder, *command)
        assert again.status == 0, (left, again)
        assert_starts(types, left.folder, left)
        assert_whole(types, left.folder, left)
        if moves:
            names = named_in(left.folder / "car/tls", "broker").extensions.get_extension_for_class(
                x509.SubjectAlternativeName)
            assert HOST in names.value.get_values_for_type(x509.DNSName), left
            for name in ("broker.json", "riders/alice/vehicle.toml"):
                assert HOST in (left.folder / "car" / name).read_text(), (left, name)


# --- Tags ---


class Watched(NTAG424):
    """Notes what it holds, and how much of a disk's log there was then."""

    disk: Disk | None = None

    def __init__(self):
        super().__init__()
        self.states: list[tuple[int, tuple]] = [(0, copy.deepcopy(self.held))]

    @property
    def held(self) -> tuple:
        return self.keys, self.key_versions, self.files

    def apdu(self, command: bytes) -> bytes:
        answer = super().apdu(command)
        if self.disk and self.held != self.states[-1][1]:
            self.states.append((self.disk.now, copy.deepcopy(self.held)))
        return answer

    def at(self, moment: int) -> NTAG424:
        """A tag that holds what this one did."""
        tag = NTAG424()
        held = [held for when, held in self.states if when <= moment][-1]
        tag.keys, tag.key_versions, tag.files = copy.deepcopy(held)
        return tag


@pytest.fixture
def tag() -> Watched:
    return Watched()


def own_keys(tag: NTAG424) -> set[str]:
    """Without the factory's."""
    return {key.hex().upper() for key in tag.keys if any(key)}


@pytest.mark.skipif(libnfc.missing() is not None, reason=f"there is no {libnfc.missing()}")
def test_a_tags_own_keys_are_kept_before_it_gets_them(power, home, types, chip):
    """A tag whose keys are lost can never be written again."""
    assert new_car(types, home).status == 0
    tag = chip.tag
    tag.disk = disk = power.on(home)
    command = ("provision", "tag", "--sdm", "--step", "left", "--vehicle", "car/vehicle.toml", "--nfc", chip.connection)
    made = types(disk.path, *command)
    assert made.status == 0, made
    after, tag.disk = disk.now, None
    assert len(own_keys(tag)) == 3

    def kept(home: Path) -> set[str]:
        entries = json.loads((home / "car/keys/tags.json").read_text())
        keys = {entry[name] for entry in entries for name in ("meta_read_key", "file_read_key")}
        masters = [home / f"car/operator/tags/{DYNAMIC_UID}.{kind}" for kind in ("key", "new")]
        return keys | {file.read_text().strip() for file in masters if file.exists()}

    first = next(when for when, _ in tag.states if own_keys(tag.at(when)))
    for left in power.cuts(disk, 0.05, first, after):
        at_the_cut = tag.at(left.at)
        assert own_keys(at_the_cut) <= kept(left.folder), left
        chip.place(at_the_cut)
        again = types(left.folder, *command)
        assert again.status == 0, (left, again)
        assert own_keys(at_the_cut) == kept(left.folder) and len(own_keys(at_the_cut)) == 3, left


# --- A vehicle ---


RIDERS = 8  # each may move steps ten times in a while
LIVES = -(-CUTS // 60)


class Ride:
    """What the vehicle promised while it ran on the disk: each with how much of the disk's log there was."""

    def __init__(self, vehicle: Vehicle, power: Power):
        self.vehicle, self.power, self.random = vehicle, power, power.random
        self.operator = proto.private_key(json.loads((vehicle.folder / "operator/token.jwk").read_bytes()))
        self.event_key = proto.X25519PrivateKey.generate()
        self.riders = [vehicle.rider(f"rider{n}").peer for n in range(RIDERS)]
        self.bob = vehicle.rider("bob")
        self.epochs: set[str] = set()
        # The steps at rest: from when on, the step, its position.
        self.rests: list[tuple[int, str, str]] = []
        # When which step was told to move.
        self.asked: list[tuple[int, str]] = []
        # Commands that moved a step, and readings of tags that they used.
        self.commands: list[tuple[int, str, bytes]] = []
        self.readings: list[tuple[int, str, str, str]] = []
        # Notices: when each was sent, when it was in force, its number, whether it revokes bob.
        self.notices: list[list] = []
        self.events: list[tuple[int, dict, str]] = []
        self.disk: Disk | None = None

    # --- The operator ---

    def hears_event(self, message):
        now = self.disk.now if self.disk else 0
        claims, digest = proto.read_event(
            message.payload, self.event_key, self.riders[0].signing_key, self.vehicle.uuid)
        self.events.append((now, claims, digest))

    def operator_connection(self) -> Connection:
        login = login_file(self.vehicle.folder, "operator", "operator/client.pem", "operator/client.key")
        return Connection(
            client.Vehicle.read(str(login)), f"{self.vehicle.topic}/events", on_message=self.hears_event)

    def acknowledged(self, events: list) -> dict:
        """The last of the events that are here without a gap."""
        place, sequence = {}, 0
        for _, claims, digest in sorted(events, key=lambda event: event[1]["seq"]):
            if claims["seq"] > sequence + 1:
                break
            place, sequence = {"acked": {"seq": claims["seq"], "hash": digest}}, claims["seq"]
        return place

    def notice(self, number: int, revokes: bool, acked: dict) -> bytes:
        revoked = [{"jti": token_in(self.bob.folder / "token.jwt"), "until": 4_000_000_000}] if revokes else []
        claims = {
            "vehicle": self.vehicle.uuid,
            "seq": number,
            "iat": int(time.time()),
            "keys": [proto.jwk(self.operator.public_key())],
            "revoked": revoked,
            "event_key": proto.jwk(self.event_key)["x"],
        }
        return proto.sign_notice(claims | acked, self.operator).encode()

    def tells(self, operator: Connection, revokes: bool):
        """A notice, which is in force when its event is here."""
        number = len(self.notices) + 1
        payload = self.notice(number, revokes, self.acknowledged(self.events))
        self.notices.append([self.disk.now, None, number, revokes, payload])
        operator.publish(f"{self.vehicle.topic}/operator", payload, retain=True)

        def in_force():
            return next((when for when, claims, _ in self.events if claims.get("notice") == number), None)

        self.notices[-1][1] = wait_until(in_force, f"the event of notice {number}")

    # --- A rider ---

    def moves(self, witness: Witness, step: str, position: str):
        """By the step's dynamic tag. The journal has it at the end."""
        rider = self.riders[len(self.commands) % RIDERS]
        tag = self.vehicle.tags[step]
        witness.login = rider
        statement = witness.ask(step)
        self.epochs.add(statement["epoch"])
        uri = tag.read(self.vehicle.uuid, step)
        proof = proto.tag_proof(tag.uid, uri, statement["clock"])
        command = client.build(rider, step, position, proto.permission(statement, proof)).payload
        self.asked.append((self.disk.now, step))
        witness.publish(step, command)
        answer = witness.answers_until(command)[-1]
        assert answer["phase"] == "moving", answer
        # The challenge and the reading are used up.
        self.commands.append((self.disk.now, step, command))
        self.readings.append((self.disk.now, step, tag.uid, uri))
        while not proto.is_at_rest(answer):
            answer = witness.answers_until(command)[-1]
        assert answer["position"] == position
        self.settles(step, position)

    def settles(self, step: str, position: str):
        journal = self.disk.path / "journal.json"

        def written():
            entry = json.loads(journal.read_bytes())[step]
            return entry["position"] == position and "motion" not in entry

        wait_until(written, "the journal has the position")
        # Its folder is synced a moment later.
        wait_until(lambda: is_synced(self.disk), "the journal is on the medium")
        self.rests.append((self.disk.now, step, position))

    def runs(self, rounds: int) -> Disk:
        """The vehicle's life on a disk, in which its program is killed now and then."""
        folder = self.vehicle.folder.with_name("controller")
        shutil.copytree(self.vehicle.folder, folder, symlinks=True)
        self.disk = self.power.on(folder)
        self.vehicle.starts_broker()
        stepd = self.starts(self.disk.path)
        at = {"left": "close", "right": "close"}
        with self.operator_connection() as operator, Witness(self.vehicle, self.riders[0]) as witness:
            self.tells(operator, False)
            for number in range(rounds):
                match number % 4:
                    case 0 | 1:
                        step = self.random.choice(list(at))
                        at[step] = "open" if at[step] == "close" else "close"
                        self.moves(witness, step, at[step])
                    case 2:
                        self.tells(operator, self.random.random() < 0.6)
                    case 3 if self.random.random() < 0.7:
                        stepd.kill()
                        stepd = self.starts(self.disk.path)
        stepd.kill()
        self.vehicle.broker.kill()
        return self.disk

    def starts(self, folder: Path) -> Running:
        """Ready for commands, as Vehicle.starts_stepd()."""
        broker, before = self.vehicle.broker, self.vehicle.broker.said
        stepd = self.vehicle.starts("stepd", STEPD, "--config", folder / "stepd.toml")
        stepd.says("connected to")
        for step in ("left", "right"):
            broker.says(f"'{self.vehicle.status(step)}'", after=before)
        return stepd

    def starts_another_broker(self):
        """One that has kept no notice, so that the vehicle hears none again."""
        for file in (self.vehicle.folder / "data").iterdir():
            file.unlink()
        self.vehicle.starts_broker()

    def starts_on_a_disk(self, left: Left) -> Disk:
        self.starts_another_broker()
        disk = self.power.on(left.folder)
        self.starts(disk.path).kill()
        self.vehicle.broker.kill()
        return disk

    # --- After a cut ---

    def expected(self, left: Left, changes: list) -> dict[str, set[tuple]]:
        """The state that each step may be in: as it was, or unknown if it had begun to move since."""
        states = {}
        for step in ("left", "right"):
            rests = [(0, "close"), *((when, position) for when, each, position in self.rests if each == step)]
            when, position = max(rest for rest in rests if rest[0] <= left.at)
            begun = [motion["to"] for size, motion in changes if motion["step"] == step and when < size <= left.at]
            states[step] = {(position, "idle")} if not begun else {("unknown", "fault"), (begun[-1], "idle")}
            # The journal has it before the servo is told.
            if any(each == step and when <= asked <= left.at for asked, each in self.asked):
                states[step].add(("unknown", "fault"))
        return states

    def survives(self, left: Left, motions: list):
        """Starts what a cut left, and asks for all that was promised."""
        (left.folder / "servo.jsonl").unlink(missing_ok=True)
        self.starts_another_broker()
        stepd = self.starts(left.folder)
        told: list = []
        with self.operator_connection() as operator, Witness(self.vehicle, self.riders[0]) as witness:
            expected = self.expected(left, motions)
            for step, allowed in expected.items():
                statement = witness.ask(step)
                assert (statement["position"], statement["phase"]) in allowed, (left, step, statement)
                assert statement["epoch"] not in self.epochs, left
            # An old notice changes nothing, and a revoked token stays so.
            in_force = [notice for notice in self.notices if notice[1] <= left.at]
            if in_force:
                operator.deliver(f"{self.vehicle.topic}/operator", self.notices[0][4])
            asked = self.bob.types("status")
            is_revoked = "(token_revoked)" in asked.stderr
            assert asked.status == (5 if is_revoked else 0), (left, asked)
            sent = [notice for notice in self.notices if notice[0] <= left.at]
            allowed = {notice[3] for notice in sent[max(0, len(in_force) - 1) :]} or {False}
            if not in_force:
                allowed.add(False)
            assert is_revoked in allowed, (left, "the notice is lost")
            self.is_single_use(witness, left)
            # The chain of events goes on.
            before = [event for event in self.events if event[0] <= left.at]
            self.events, kept = told, self.events
            try:
                number = len(self.notices) + 1
                acked = self.acknowledged(before)
                operator.publish(f"{self.vehicle.topic}/operator", self.notice(number, False, acked))
                wait_until(lambda: any(claims.get("notice") == number for _, claims, _ in told), f"{left}: the events")
            finally:
                self.events = kept
            if acked:
                _, first, _ = min(told, key=lambda event: event[1]["seq"])
                place = acked["acked"]
                assert (first["seq"], first["prev"]) == (place["seq"] + 1, place["hash"]), (left, first, place)
        assert not (left.folder / "servo.jsonl").exists(), (left, "something moved")
        assert not list(left.folder.glob("*.new")), left
        stepd.kill()
        self.vehicle.broker.kill()

    def is_single_use(self, witness: Witness, left: Left):
        used = [command for command in self.commands if command[0] <= left.at]
        for _, step, command in used[-1:]:
            refusal = witness.exchange(step, command)[-1]["refusal"]["code"]
            assert refusal in ("replayed", "expired"), (left, refusal)
        used = [reading for reading in self.readings if reading[0] <= left.at]
        for _, step, uid, uri in used[-1:]:
            statement = witness.ask(step)
            proof = proto.tag_proof(uid, uri, statement["clock"])
            other = "open" if statement["position"] == "close" else "close"
            command = client.build(witness.login, step, other, proto.permission(statement, proof)).payload
            answer = witness.exchange(step, command)[-1]
            assert answer.get("refusal", {}).get("code") == "stale_proof", (left, answer)


def is_synced(disk: Disk) -> bool:
    """Whether the vehicle's folder was synced after the journal got its name."""
    last = [change[0] for _, change in disk.changes() if change[0] == "sync_folder" or change[-1] == "/journal.json"]
    return last[-1] == "sync_folder"


@pytest.mark.parametrize("life", range(LIVES))
def test_a_vehicle_keeps_what_it_promised_and_starts_again(power, parked, life):
    parked.gains_identifiers(proofs=["nfc"], reserve_s=0)
    ride = Ride(parked, power)
    disk = ride.runs(24)
    motions = [
        (size, json.loads(line))
        for size, change in disk.changes()
        if change[0] == "write" and change[3].startswith('{"time_s"')
        for line in change[3].splitlines()
    ]
    assert len(motions) == len(ride.commands)
    for number, left in enumerate(power.cuts(disk, 0.4 / LIVES)):
        if number % 4 == 0:
            # The power goes again while it starts.
            again = ride.starts_on_a_disk(left)
            for second in power.cuts(again, 0):
                ride.survives(replace(second, at=left.at, name=f"{left.name}; then {second.name}"), motions)
            again.close()
        else:
            ride.survives(left, motions)
