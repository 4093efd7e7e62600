"""A device's key that a passphrase protects: made, used, changed, and read by openssl."""

import base64
import os
import signal
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives import serialization

import keyrings
import stepproto as proto
from devices import Device, granted
from programs import STEPCTL, wait_until

PASSPHRASE, OTHER = "correct horse battery", "staple ätna 99"
QUESTION = b"passphrase of this device's key: "


class Guarded(Device):
    """Its rider has the passphrase in a file."""

    def __init__(self, home, transcript):
        super().__init__(home, transcript)
        transcript.secrets |= {PASSPHRASE: "passphrase", OTHER: "other passphrase"}

    def file(self, text: str, mode=0o600):
        file = self.home / "passphrase"
        file.write_text(text)
        file.chmod(mode)
        return file

    def types(self, *arguments, passphrase: str | None = PASSPHRASE, **more):
        variables = {} if passphrase is None else {"STEPCTL_PASSPHRASE_FILE": str(self.file(passphrase + "\n"))}
        return super().types(*arguments, **variables, **more)


    @property
    def entry(self) -> str:
        """The name of what the kernel keeps while the key is unlocked."""
        return f"stepctl:{self.keys}"

    def uses_its_key(self, **more) -> int:
        """How a command ends that needs the device's key, typed by who does not know the passphrase."""
        return self.types("enroll", "--name", "anna", passphrase=None, **more).status

    def remembers(self) -> dict:
        """Every file but the passphrase's."""
        files = (file for file in self.home.rglob("*") if file.is_file() and file.name != "passphrase")
        return {file: file.read_bytes() for file in files}


def keyring(*action: str) -> tuple:
    """A prefix for a program."""
    return (sys.executable, keyrings.__file__, *action)


@pytest.fixture
def session():
    """A login session whose keyring is empty."""
    if not keyrings.are_there():
        pytest.skip("this system gives programs no keyring")
    keyrings.login()


@pytest.fixture
def phone(tmp_path, transcript) -> Guarded:
    return Guarded(tmp_path / "phone", transcript)


@pytest.fixture
def rider(phone, shared_vehicle, tmp_path) -> Guarded:
    request = phone.asks("--passphrase-file", phone.file(PASSPHRASE))
    name = tmp_path.name[-20:].strip("_")
    access = granted(shared_vehicle.stepctl, shared_vehicle.folder, request, "--rider", name)
    imported = phone.imports("-", input=access.encode(), passphrase=None)
    assert imported.status == 0, imported
    return phone


def test_openssl_and_cryptography_read_the_key(phone):
    request = phone.asks("--passphrase", input=f"{PASSPHRASE}\n".encode(), passphrase=None)
    pem = phone.key.read_bytes()
    assert oct(phone.key.stat().st_mode & 0o777) == "0o600"
    assert pem.startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----")
    read = subprocess.run(
        ["openssl", "pkey", "-in", phone.key, "-passin", f"file:{phone.file(PASSPHRASE)}", "-text_pub", "-noout"],
        capture_output=True, text=True,
    )
    assert read.returncode == 0 and "ED25519" in read.stdout
    form = subprocess.run(["openssl", "asn1parse", "-in", phone.key], capture_output=True, text=True).stdout
    assert all(word in form for word in ("PBES2", "scrypt", "aes-256-cbc"))
    key = serialization.load_pem_private_key(pem, PASSPHRASE.encode())
    asked = proto.from_json(proto.from_base64url(request.split(".")[0]))
    assert asked["jwk"]["x"] == proto.jwk(key.public_key())["x"]
    # The public part after it is the same key's.
    public = serialization.load_pem_public_key(pem[pem.index(b"-----BEGIN PUBLIC") :])
    assert proto.jwk(public) == proto.jwk(key.public_key())
    with pytest.raises(ValueError):
        serialization.load_pem_private_key(pem, OTHER.encode())


def test_every_command_with_the_key_takes_the_passphrase(rider, shared_vehicle):
    for command in (["status"], ["doctor", "vehicle", "controller"], ["stop"]):
        ended = rider.types(*command)
        assert ended.status == 0, ended
    opened = rider.types("open", "--side", "right", "--radio", shared_vehicle.radio("right"))
    assert (opened.status, opened.stdout) == (0, "the right step is open\n")
    assert rider.types("close", "--side", "right", "--radio", shared_vehicle.radio("right")).status == 0
    # What needs no signature needs no passphrase.
    for command in ([], ["config", "show"]):
        assert rider.types(*command, passphrase=None).status == 0
    # Whether it is known or not, a renewal is imported without it.
    assert rider.types("enroll", passphrase=None).status == 77


def test_a_wrong_passphrase_is_one_line_and_nothing_is_sent(rider, shared_vehicle):
    before = shared_vehicle.published("left")
    for command in (["status"], ["open", "--side", "left", "--radio", shared_vehicle.radio("left")], ["enroll"]):
        ended = rider.types(*command, passphrase=OTHER)
        assert ended.status == 77 and ended.error.endswith("device/device.jwk: the passphrase is wrong"), ended
        assert len(ended.stderr.splitlines()) == 1 and ended.stdout == ""
    assert shared_vehicle.published("left") == before


def test_nobody_is_asked_where_nobody_can_answer(rider):
    for command in (["status"], ["enroll", "--no-input"]):
        ended = rider.types(*command, passphrase=None)
        assert ended.status == 77 and "nobody can be asked" in ended.error
        assert "STEPCTL_PASSPHRASE_FILE" in ended.stderr
    open_to_all = rider.stepctl("status", STEPCTL_PASSPHRASE_FILE=str(rider.file(PASSPHRASE, 0o644)))
    assert open_to_all.status == 77 and "can be read by others" in open_to_all.error
    assert rider.stepctl("status", STEPCTL_PASSPHRASE_FILE="/nonexistent").status == 66
    empty = rider.stepctl("status", STEPCTL_PASSPHRASE_FILE=str(rider.file("\n")))
    assert (empty.status, empty.error.endswith("an empty passphrase")) == (78, True)


def test_on_a_terminal_it_is_asked_for_once_and_not_shown(rider, shared_vehicle, on_terminal):
    radio = shared_vehicle.radio("right")
    terminal = on_terminal([STEPCTL, "open", "--side", "right", "--radio", radio], HOME=str(rider.home))
    terminal.waits_for(QUESTION)
    wait_until(lambda: not terminal.shows_what_is_typed, "the terminal hides what is typed")
    terminal.types(PASSPHRASE.encode() + b"\n")
    assert terminal.ends() == 0
    assert terminal.written.count(QUESTION) == 1 and PASSPHRASE.encode() not in terminal.written
    assert terminal.shows_what_is_typed
    waiting = on_terminal([STEPCTL, "status"], HOME=str(rider.home))
    waiting.waits_for(QUESTION)
    waiting.types(b"\x03")
    assert waiting.ends() == -signal.SIGINT
    assert waiting.shows_what_is_typed


def test_who_mistypes_it_on_a_terminal_is_asked_twice_more(rider, shared_vehicle, on_terminal):
    def types(*answers: str) -> int:
        terminal = on_terminal([STEPCTL, "status"], HOME=str(rider.home))
        for count, answer in enumerate(answers, start=1):
            wait_until(lambda: terminal.read().count(QUESTION) == count, "it asks")  # noqa: B023
            wait_until(lambda: not terminal.shows_what_is_typed, "the terminal hides what is typed")
            terminal.types(answer.encode() + b"\n")
        assert terminal.ends() == 77 or answers[-1] == PASSPHRASE
        assert terminal.written.count(b"the passphrase is wrong") == sum(answer != PASSPHRASE for answer in answers)
        return terminal.process.returncode

    assert types(OTHER, OTHER, PASSPHRASE) == 0
    assert types(OTHER, OTHER, OTHER) == 77


def test_a_new_one_is_typed_twice(phone, on_terminal):
    terminal = on_terminal([STEPCTL, "enroll", "--name", "anna", "--passphrase"], HOME=str(phone.home))
    asked = {"new passphrase: ": 0, "again: ": 0}

    def types(question: str, answer: str):
        asked[question] += 1
        wait_until(lambda: terminal.read().count(question.encode()) == asked[question], f"it asks {question}")
        wait_until(lambda: not terminal.shows_what_is_typed, "the terminal hides what is typed")
        terminal.types(answer.encode() + b"\n")

    # What is wrong is asked for again: nothing that is typed goes to the shell.
    types("new passphrase: ", "short")
    terminal.waits_for(b"a passphrase has 8 to 256 bytes")
    types("new passphrase: ", PASSPHRASE)
    types("again: ", OTHER)
    terminal.waits_for(b"these are two different passphrases")
    assert not phone.key.exists(), "nothing was made"
    types("new passphrase: ", PASSPHRASE)
    types("again: ", PASSPHRASE)
    assert terminal.ends() == 0
    assert phone.types("enroll", "--name", "anna").status == 0


@pytest.mark.arm64
def test_it_can_be_set_changed_and_taken_away_and_the_key_stays(phone):
    request = phone.asks(passphrase=None)
    assert phone.key.read_bytes().startswith(b'{"kty"')

    def key(text: str) -> dict:
        return proto.from_json(proto.from_base64url(text.split(".")[0]))["jwk"]

    def file(text: str):
        path = phone.home / "new"
        path.touch(0o600)
        path.write_text(text + "\n")
        return path

    set_ = phone.asks("--passphrase-file", file(PASSPHRASE), passphrase=None)
    changed = phone.asks("--passphrase-file", file(OTHER), passphrase=PASSPHRASE)
    assert phone.types("enroll", "--name", "anna", passphrase=PASSPHRASE).status == 77
    # The present one is needed for another.
    before = phone.key.read_bytes()
    assert phone.types("enroll", "--name", "anna", "--passphrase-file", file(PASSPHRASE), passphrase=PASSPHRASE).status == 77
    assert phone.types("enroll", "--name", "anna", "--no-passphrase", passphrase=PASSPHRASE).status == 77
    assert phone.key.read_bytes() == before
    gone = phone.asks("--no-passphrase", passphrase=OTHER)
    assert phone.key.read_bytes().startswith(b'{"kty"') and oct(phone.key.stat().st_mode & 0o777) == "0o600"
    assert key(request) == key(set_) == key(changed) == key(gone)
    both = phone.types("enroll", "--no-passphrase", "--passphrase-file", file(OTHER), passphrase=None)
    assert both.status == 64


def test_a_descriptor_serves_as_a_file(phone):
    reading, writing = os.pipe()
    os.write(writing, PASSPHRASE.encode() + b"\n")
    os.close(writing)
    made = subprocess.run(
        [STEPCTL, "enroll", "--name", "anna", "--passphrase-file", f"/dev/fd/{reading}"],
        env=phone.stepctl.environment, pass_fds=[reading], capture_output=True,
    )
    os.close(reading)
    assert made.returncode == 0, made
    assert phone.types("enroll", "--name", "anna").status == 0


@pytest.mark.parametrize("damage", ["cut", "private", "public", "missing", "other"])
def test_a_damaged_key_is_said(phone, damage):
    phone.asks("--passphrase-file", phone.file(PASSPHRASE))
    pem = phone.key.read_text()
    lines = pem.splitlines()
    end = lines.index("-----END ENCRYPTED PRIVATE KEY-----")
    if damage == "cut":
        lines = lines[:3]
    elif damage == "private":
        lines[2] = lines[2][::-1]
    elif damage == "public":
        lines[end + 2] = lines[end + 2][:-8] + "AAAAAAA="
    elif damage == "missing":
        lines = lines[: end + 1]
    else:
        other = proto.Ed25519PrivateKey.generate().public_key()
        text = other.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        lines[end + 1 :] = text.decode().splitlines()
    phone.key.write_text("\n".join(lines) + "\n")
    ended = phone.types("enroll", "--name", "anna")
    assert ended.status in (77, 78) and ended.stdout == "" and len(ended.stderr.splitlines()) <= 2
    assert str(phone.key) in ended.error


# --- unlock and lock ---


def test_while_the_key_is_unlocked_nobody_is_asked_and_nothing_is_written(rider, shared_vehicle, session):
    before = rider.remembers()
    unlocked = rider.types("unlock", "--json")
    assert (unlocked.status, unlocked.json["unlocked_s"], unlocked.stderr) == (0, 900, "")
    assert rider.remembers() == before
    alone = {"passphrase": None}
    for command in (["status"], ["doctor", "vehicle", "controller"], ["stop"], ["enroll", "--name", "anna"]):
        ended = rider.types(*command, **alone)
        assert ended.status == 0, ended
    radio = shared_vehicle.radio("right")
    opened = rider.types("open", "--side", "right", "--radio", radio, **alone)
    assert (opened.status, opened.stdout) == (0, "the right step is open\n")
    locked = rider.types("lock", **alone)
    assert (locked.status, locked.stdout) == (0, "this device's key is locked\n")
    assert rider.types("status", **alone).status == 77
    assert rider.types("lock", "--json", **alone).json == {"was_unlocked": False}


def test_the_kernel_keeps_no_passphrase_and_ends_it_itself(phone, session):
    phone.asks("--passphrase-file", phone.file(PASSPHRASE))
    assert phone.uses_its_key() == 77
    assert phone.types("unlock", "--for", "15s").status == 0
    kept = keyrings.read(phone.entry)
    assert PASSPHRASE.encode() not in kept
    # Its end, and an AES key, with which openssl opens the file.
    assert len(kept) == 8 + 32
    parse = ["openssl", "asn1parse", "-in", phone.key]
    form = subprocess.run(parse, capture_output=True, text=True, check=True).stdout
    octets = [line for line in form.splitlines() if "OCTET STRING" in line]
    vector, content = octets[1].rpartition(":")[2], int(octets[2].partition(":")[0])
    der = base64.b64decode("".join(phone.key.read_text().splitlines()[1:-1]))
    plain = subprocess.run(
        ["openssl", "enc", "-d", "-aes-256-cbc", "-K", kept[8:].hex(), "-iv", vector],
        input=der[content + 2 :],  # the octets behind their tag and length
        capture_output=True, check=True,
    ).stdout
    key = serialization.load_pem_private_key(phone.key.read_bytes(), PASSPHRASE.encode())
    assert serialization.load_der_private_key(plain, None).public_key() == key.public_key()
    wait_until(lambda: phone.uses_its_key() == 77, "the time has passed", pause=0.2)
    with pytest.raises(OSError):
        keyrings.read(phone.entry)


def test_another_login_session_and_another_user_have_nothing(phone, session):
    phone.asks("--passphrase-file", phone.file(PASSPHRASE))
    assert phone.types("unlock").status == 0
    assert phone.uses_its_key() == 0
    assert phone.uses_its_key(prefix=keyring("login")) == 77
    assert phone.uses_its_key() == 0
    if os.geteuid() != 0:
        pytest.skip("only root becomes another user")
    # su(1) leaves the session, and its keyring, to the other user.
    read = subprocess.run([*keyring("read", phone.entry, "65534")], capture_output=True, text=True)
    assert (read.returncode, read.stdout, read.stderr) == (1, "", "EACCES\n")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("ENOSYS", "this system gives the program no keyring: Function not implemented"),
        ("EPERM", "this system gives the program no keyring: Operation not permitted"),
        ("EDQUOT", "your keyrings in the kernel are full"),
    ],
)
def test_without_a_keyring_the_passphrase_is_asked_for_as_ever(phone, code, message):
    phone.asks("--passphrase-file", phone.file(PASSPHRASE))
    prefix = keyring("refuse", code)
    for command in ("unlock", "lock"):
        ended = phone.types(command, prefix=prefix)
        assert (ended.status, ended.stdout, ended.error) == (69, "", message)
        assert len(ended.stderr.splitlines()) == 2 and ended.hint
    assert phone.uses_its_key(prefix=prefix) == 77
    assert phone.types("enroll", "--name", "anna", prefix=prefix).status == 0


def test_a_key_without_a_passphrase_costs_no_call_for_a_keyring(shared_rider, phone):
    forbidden = {"prefix": keyring("forbid")}
    for command in (["status"], ["stop"]):
        ended = shared_rider.types(*command, **forbidden)
        assert ended.status == 0, ended
    assert shared_rider.moves("open", "left", **forbidden).status == 0
    assert shared_rider.moves("close", "left", **forbidden).status == 0
    phone.asks("--passphrase-file", phone.file(PASSPHRASE))
    assert phone.uses_its_key(**forbidden) == -signal.SIGSYS, "it would be found out"


def test_on_a_terminal_unlocking_asks_once_and_the_overview_counts_down(phone, on_terminal, session):
    phone.asks("--passphrase-file", phone.file(PASSPHRASE))
    terminal = on_terminal([STEPCTL, "unlock", "--for", "12m"], HOME=str(phone.home))
    terminal.waits_for(QUESTION)
    wait_until(lambda: not terminal.shows_what_is_typed, "the terminal hides what is typed")
    terminal.types(PASSPHRASE.encode() + b"\n")
    assert terminal.ends() == 0
    assert terminal.written.count(QUESTION) == 1 and b"is unlocked until" in terminal.written
    assert "unlocked for 12 min" in phone.types("-v", passphrase=None).stdout
    # It is asked for again, although the key is unlocked: else one could keep it so for ever.
    again = phone.types("unlock", passphrase=None)
    assert again.status == 77 and again.hint == "name a file with it in STEPCTL_PASSPHRASE_FILE"
    assert phone.types("unlock", "--for", "13h").error == "--for takes at most 12h"
