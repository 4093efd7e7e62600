"""stepproto.py against published vectors and other libraries, and the attacks against a controller by the page."""

import json
import re
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from joserfc import jws
from joserfc.jwk import OKPKey

import attacks
import forgeries
import make_example
import stepproto as proto
from controller import Controller, Steps

FIXTURES = Path(__file__).parent.parent / "Fixtures"
VEHICLE = "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"
NOW = 1_767_254_400


def fixture(name: str) -> dict:
    return json.loads((FIXTURES / name).read_bytes())


# --- Published vectors ---


def test_thumbprint_and_signature_of_rfc_8037():
    vector = fixture("rfc8037.json")
    key = proto.private_key(vector["jwk"])
    assert proto.jwk(key) == vector["jwk"]
    assert proto.thumbprint(key) == vector["thumbprint"]
    assert proto.sign(key, vector["header"].encode(), vector["payload"].encode()) == vector["jws"]


def test_opens_the_drafts_hpke_4_vector():
    vector = fixture("jose-hpke-4.json")
    key = X25519PrivateKey.from_private_bytes(proto.from_base64url(vector["jwk"]["d"]))
    assert proto.thumbprint(key) == vector["jwk"]["kid"]
    header, enc, iv, ciphertext, tag = vector["compact"].split(".")
    assert (iv, tag) == ("", "")
    context = proto.HPKE.create_recipient_context(proto.from_base64url(enc), proto.hpke_key(key))
    assert context.open(proto.from_base64url(ciphertext), aad=header.encode()).decode() == vector["plaintext"]


def test_seals_as_rfc_9180_does():
    vector = fixture("rfc9180.json")
    ephemeral, recipient = (X25519PrivateKey.from_private_bytes(bytes.fromhex(vector[k])) for k in ("skEm", "skRm"))
    pair = proto.KEMKeyPair(proto.hpke_key(ephemeral), proto.hpke_key(ephemeral.public_key()))
    enc, context = proto.HPKE.create_sender_context(
        proto.hpke_key(recipient.public_key()), bytes.fromhex(vector["info"]), eks=pair
    )
    assert enc.hex() == vector["enc"]
    for number, each in enumerate(vector["encryptions"]):
        sealed = context.seal(bytes.fromhex(each["pt"]), aad=bytes.fromhex(each["aad"])).hex()
        assert each["sequence"] != number or sealed == each["ct"]


def test_two_ways_to_seal_agree():
    ephemeral, recipient = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    payload = proto.seal(recipient.public_key(), b"plaintext", ephemeral=ephemeral).decode()
    header, enc, _, ciphertext, _ = payload.split(".")
    agreed = attacks.seal_agreed(
        ephemeral.exchange(recipient.public_key()),
        proto.from_base64url(enc),
        recipient.public_key().public_bytes_raw(),
        header.encode(),
        b"plaintext",
    )
    assert proto.base64url(agreed) == ciphertext
    assert proto.unseal(recipient, payload.encode()) == "plaintext"


@pytest.mark.parametrize("point", attacks.SMALL_ORDER.values())
def test_points_of_small_order_agree_on_zero(point):
    with pytest.raises(ValueError):
        X25519PrivateKey.generate().exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(point)))


@pytest.mark.parametrize("key", attacks.SMALL_ORDER_KEYS, ids=bytes.hex)
def test_keys_of_small_order_are_refused_where_they_are_loaded(key):
    with pytest.raises(proto.ProtocolError):
        proto.ed25519_key(key)


def test_signatures_for_keys_of_small_order_can_be_forged():
    """Otherwise the attacks with them would show nothing."""
    for key in attacks.SMALL_ORDER_KEYS:
        forged = [(message, attacks.forge(key, message)) for message in (bytes([n]) for n in range(64))]
        verified = 0
        for message, signature in forged:
            try:
                Ed25519PublicKey.from_public_bytes(key).verify(signature or bytes(64), message)
                verified += 1
            except InvalidSignature:
                pass
        assert verified or int.from_bytes(key, "little") & ~(1 << 255) >= proto.P, "for what is no canonical form, maybe"
    assert len(attacks.SMALL_ORDER_KEYS) == 14


@pytest.mark.parametrize("load", [proto.ed25519_key, proto.x25519_key])
def test_numbers_that_are_not_below_p_are_no_keys(load):
    for number in range(proto.P, 2**255):
        with pytest.raises(proto.ProtocolError):
            load(number.to_bytes(32, "little"))
    load((9).to_bytes(32, "little"))


def test_cmac_is_rfc_4493s():
    vector = fixture("rfc4493.json")
    for example in vector["examples"]:
        message = bytes.fromhex(vector["message"])[: example["length"]]
        assert proto.aes_cmac(bytes.fromhex(vector["key"]), message).hex() == example["mac"]


def test_reads_a_tag_as_an12196_does():
    for each in fixture("an12196.json")["messages"]:
        uri = f"stepctl:{VEHICLE}/left?e={each['e']}&c={each['c']}"
        keys = bytes.fromhex(each["meta_read_key"]), bytes.fromhex(each["file_read_key"])
        assert proto.read_tag_uri(uri, *keys) == (VEHICLE, "left", each["uid"], each["counter"])
        again = proto.tag_uri(VEHICLE, "left", each["uid"], each["counter"], *keys, bytes.fromhex(each["padding"]))
        assert again == uri


def test_joserfc_agrees_on_signatures_and_thumbprints():
    device = Ed25519PrivateKey.generate()
    key = OKPKey.import_key(proto.jwk(device))
    assert key.thumbprint() == proto.thumbprint(device)
    ours = proto.sign(device, b'{"alg":"Ed25519"}', b"{}")
    assert jws.deserialize_compact(ours, key, algorithms=["Ed25519"]).payload == b"{}"
    theirs = jws.serialize_compact({"alg": "Ed25519"}, b"{}", key, algorithms=["Ed25519"])
    assert proto.SignedText.read(theirs).verified(device.public_key(), {"alg": "Ed25519"}) == {}


@pytest.mark.parametrize("text", ["A", "AB", "AAB", "AA==", "AA+A", "AA/A", "A A", "AAA\n", "é"])
def test_refuses_base64url_that_is_not_canonical(text):
    with pytest.raises(proto.ProtocolError):
        proto.from_base64url(text)


# --- Attacks ---


def with_k(kind):
    """A key whose name has a K in it, for the attacks that need one."""
    while True:
        key = kind.generate()
        if "K" in proto.thumbprint(key):
            return key


BEACON = (bytes(range(32)), 8)
TAGS = {
    "left": attacks.Tag("04DE5F1EACC040", bytes(range(16)), bytes(range(16, 32))),
    "right": attacks.Tag("041E3C8A2D6B80", bytes(range(32, 48)), bytes(range(48, 64))),
}


class Bench:
    """A controller by the page, riders, and a clock."""

    def __init__(self, **policy):
        self.steps = Steps(
            **({"methods": ("beacon", "nfc", "qr")} | policy),
            beacons={"left": BEACON},
            minors={"right": 7},
            labelled={"left": ["04A1B2C3D4E5F6"]},
            tags={tag.uid: (step, tag.meta_read, tag.file_read) for step, tag in TAGS.items()},
        )
        self.counters: dict[str, int] = {}
        self.operator = with_k(Ed25519PrivateKey)
        self.encryption, self.signing = with_k(X25519PrivateKey), with_k(Ed25519PrivateKey)
        self.clock = 1_000
        self.start()
        self.context = attacks.Context(
            vehicle=VEHICLE,
            majors={"left": 1, "right": 2},
            step="left",
            encryption_key=self.encryption.public_key(),
            rider=self.rider("anna"),
            exchange=self.exchange,
            sleep=self.sleep,
            unix_time=lambda: NOW,
            restart=self.start,
            other_rider=self.rider("bert"),
            operator=self.operator,
            beacons={"left": BEACON},
            labelled={"left": "04A1B2C3D4E5F6"},
            tags=TAGS,
        )

    def start(self):
        majors, keys = {"left": 1, "right": 2}, (self.encryption, self.signing, self.operator.public_key())
        self.controller = Controller(VEHICLE, majors, *keys, steps=self.steps, counters=self.counters)

    def rider(self, name: str) -> attacks.Rider:
        device = Ed25519PrivateKey.generate()
        claims = {
            "iss": "arena2036",
            "sub": name,
            "aud": VEHICLE,
            "steps": ["left", "right"],
            "nbf": NOW - 60,
            "exp": NOW + 60,
            "jti": f"{name}-1",
            "cnf": {"jwk": proto.jwk(device.public_key())},
        }
        return attacks.Rider(device, proto.sign_token(claims, self.operator))

    def sleep(self, seconds: float):
        self.clock += int(seconds * 1000)
        self.controller.finish_motions(self.clock)

    def statuses(self, step: str, payload: bytes, retained: bool = False) -> list[bytes]:
        return self.controller.receive(step, payload, retained, self.clock, NOW)

    def exchange(self, step: str, payload: bytes, first_only: bool) -> list[dict]:
        statuses = self.statuses(step, payload)
        if not first_only:
            self.clock += self.controller.motion_ms
            statuses += [status for _, status in self.controller.finish_motions(self.clock)]
        return [proto.read_status(status, self.signing.public_key()) for status in statuses]

    def answer(self, payload: bytes, retained: bool) -> dict | None:
        statuses = self.statuses("left", payload, retained)
        return proto.read_status(statuses[0], self.signing.public_key()) if statuses else None


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_names_are_unique():
    for table in (
        attacks.ATTACKS + attacks.STRICT_ATTACKS + attacks.NEAREST_ATTACKS + attacks.HEARING_ATTACKS
        + attacks.RESERVING_ATTACKS + attacks.VARIANTS,
        forgeries.FORGERIES + forgeries.LIES + forgeries.NEWER,
    ):
        names = [each.name for each in table]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("attack", attacks.ATTACKS + attacks.RESERVING_ATTACKS, ids=str)
def test_attack_gets_what_the_page_says(attack, bench):
    try:
        payload, retain = attack.build(bench.context)
    except attacks.Unavailable as missing:
        pytest.skip(f"needs {missing}")
    before = dict(bench.controller.positions), set(bench.controller.motions)
    answer = bench.answer(payload, retain and attack.stored)
    assert (answer and answer["refusal"]["code"]) == attack.expected
    assert (dict(bench.controller.positions), set(bench.controller.motions)) == before


@pytest.mark.parametrize("attack", attacks.STRICT_ATTACKS, ids=str)
def test_strict_policy_takes_no_copies(attack):
    bench = Bench(methods=("beacon", "nfc"), static=False)
    payload, _ = attack.build(bench.context)
    assert bench.answer(payload, False)["refusal"]["code"] == attack.expected
    for name in ("honest move", "dynamic tag"):
        payload, _ = attacks.named(name).build(bench.context)
        assert bench.exchange("left", payload, False)[-1]["phase"] == "idle"


@pytest.mark.parametrize("attack", attacks.NEAREST_ATTACKS, ids=str)
def test_the_nearest_zone_is_asked_of_the_zone(attack):
    bench = Bench(zone="immediate")
    assert bench.context.ask()["policy"] == {"proofs": ["beacon", "nfc", "qr"], "zone": "immediate", "static": True}
    payload, _ = attack.build(bench.context)
    assert bench.answer(payload, False)["refusal"]["code"] == attack.expected
    payload, _ = attacks.named("honest move").build(bench.context)
    assert bench.answer(payload, False)["phase"] == "moving"


@pytest.mark.parametrize("heard", [None, "right"])
@pytest.mark.parametrize("attack", attacks.HEARING_ATTACKS, ids=str)
def test_who_is_not_heard_is_refused_whatever_else_is_proved(attack, heard):
    bench = Bench(methods=("beacon", "nfc", "heard"), calls=True, both=True)
    device = proto.jwk(bench.context.rider.device.public_key())["x"]
    if heard:
        bench.controller.heard[device] = heard
    asked = bench.context.ask()
    assert asked["policy"]["ext"] == {"both": True}
    assert asked["ext"]["call"] == {"slot": 300, "slots": 32} | ({"heard": heard} if heard else {})
    payload, _ = attack.build(bench.context)
    assert bench.answer(payload, False)["refusal"]["code"] == attack.expected
    bench.controller.heard[device] = "left"
    for name in ("honest move", "dynamic tag"):
        payload, _ = attacks.named(name).build(bench.context)
        assert bench.exchange("left", payload, False)[-1]["phase"] == "idle"


def test_heard_alone_is_enough_where_it_is_not_asked_for_beside_another():
    bench = Bench(methods=("heard",), calls=True, static=False)
    device = proto.jwk(bench.context.rider.device.public_key())["x"]
    for heard, code in ((None, "not_heard"), ("right", "not_heard"), ("left", None)):
        if heard:
            bench.controller.heard[device] = heard
        asked = bench.context.ask()
        moving = proto.permission(asked, proto.heard_proof(asked["clock"]))
        rider = bench.context.rider
        command = proto.build_command(
            rider.device, bench.encryption.public_key(), VEHICLE, "left", "open", rider.token, moving
        )
        answer = bench.answer(command.payload, False)
        assert answer.get("refusal", {}).get("code") == code


def test_what_comes_on_the_road_holds_an_opening_and_never_a_closing():
    bench = Bench(watches=True)

    def moves(position: str) -> dict:
        watch = bench.context.ask()["ext"]["watch"]
        payload = attacks.draft(bench.context, position).payload()
        return bench.exchange("left", payload, False)[-1] | {"watch": watch}

    bench.controller.oncoming["left"] = ("bicycle", 1900)
    held = moves("open")
    assert held["watch"] == "approaching" and held["refusal"] == {
        "code": "approaching", "retry": True, "ext": {"oncoming": {"category": "bicycle", "arrival": 1900}}}
    bench.controller.sees = False
    held = moves("open")
    assert held["watch"] == "blind" and held["refusal"] == {"code": "blind", "retry": True}
    bench.controller.sees, bench.controller.oncoming = True, {}
    opened = moves("open")
    assert opened["watch"] == "clear" and opened["position"] == "open"
    bench.controller.oncoming["left"] = ("car", 100)
    assert moves("close")["position"] == "close"


@pytest.mark.parametrize("ext", [{"watch": 1}, {"watch": "No word"}])
def test_what_a_vehicle_says_of_the_road_is_a_word(ext, bench):
    statement = bench.context.ask() | {"ext": ext}
    with pytest.raises(proto.ProtocolError):
        proto.read_status(proto.status_of(statement, bench.signing), bench.signing.public_key())


@pytest.mark.parametrize("call", [{"slot": 99, "slots": 1}, {"slot": 300, "slots": 34}, {"slot": 300}, {"slots": 1}])
def test_a_vehicle_cannot_have_a_device_call_for_ever(call, bench):
    statement = bench.context.ask() | {"ext": {"call": call}}
    with pytest.raises(proto.ProtocolError):
        proto.read_status(proto.status_of(statement, bench.signing), bench.signing.public_key())


def test_the_frames_of_a_call_are_what_both_ends_export():
    key, other = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    payload = proto.seal(key.public_key(), b"a question", ephemeral=other)
    # The sender's way, by hand: the exporter of a context that has sealed.
    pair = proto.KEMKeyPair(proto.hpke_key(other), proto.hpke_key(other.public_key()))
    _, context = proto.HPKE.create_sender_context(proto.hpke_key(key.public_key()), eks=pair)
    exported = context.export(b"stepctl call", 32)
    assert exported == proto.call_key(key, payload)
    frames = [proto.call_frame(exported, b"challenge", slot) for slot in range(32)]
    assert len(set(frames)) == 32 and {frame.version for frame in frames} == {4}


@pytest.mark.parametrize("variant", attacks.VARIANTS, ids=str)
def test_variant_is_obeyed(variant, bench):
    payload, retain = variant.build(bench.context)
    answer = bench.answer(payload, retain)
    assert "challenge" in answer or answer["phase"] == "moving"


@pytest.mark.parametrize("devices, questions", [(33, 8), (1_000, 1)])
def test_a_challenge_is_known_for_ten_seconds_whatever_others_ask(devices, questions, bench):
    payload = attacks.draft(bench.context).payload()
    for device in range(devices):
        for _ in range(questions):
            by(bench, bench.rider(f"rider {device}")).ask()
    assert bench.answer(payload, False)["phase"] == "moving"


# --- Stopping and turning round ---


def by(bench: Bench, rider: attacks.Rider) -> attacks.Context:
    return attacks.replace(bench.context, rider=rider)


def begun(bench: Bench, rider: attacks.Rider) -> bytes:
    """A motion of the left step, which has just begun."""
    payload = attacks.draft(by(bench, rider)).payload()
    assert bench.exchange("left", payload, True)[-1]["phase"] == "moving"
    return payload


def test_any_rider_stops_a_motion_and_both_are_answered(bench):
    anna, bert = bench.context.rider, bench.context.stranger
    move, stop = begun(bench, anna), bench.context.stop(bert)
    first, second = bench.exchange("left", stop, True)
    assert (first["command"], second["command"]) == (proto.digest(move), proto.digest(stop))
    assert all((each["phase"], each["position"]) == ("idle", "unknown") for each in (first, second))
    assert "challenge" not in second and "refusal" not in second
    assert bench.exchange("left", attacks.draft(bench.context).payload(), False)[-1]["position"] == "open"


def test_a_step_at_rest_is_answered_as_it_stands(bench):
    (answer,) = bench.exchange("left", bench.context.stop(), False)
    assert (answer["phase"], answer["position"]) == ("idle", "close")


def test_the_rider_who_moves_a_step_turns_it_round(bench):
    anna = bench.context.rider
    opening = begun(bench, anna)
    closing = attacks.draft(by(bench, anna), "close").payload()
    moving, *ended = bench.exchange("left", closing, False)
    assert (moving["phase"], moving["command"]) == ("moving", proto.digest(closing))
    assert [each["command"] for each in ended] == [proto.digest(opening), proto.digest(closing)]
    assert all((each["phase"], each["position"]) == ("idle", "close") for each in ended)


# --- Sizes ---


def test_sizes_tell_nothing(bench):
    statement, sizes = bench.context.ask(), set()
    proof = proto.beacon_proof(1, statement["clock"])
    everything = {"unknown": {}, "stop": proto.stopping(statement)} | {
        position: proto.permission(statement, proof) for position in ("open", "close")
    }
    for name in ("a", "a" * 128):
        rider = bench.rider(name)
        for position, claims in everything.items():
            built = proto.build_command(
                rider.device, bench.encryption.public_key(), VEHICLE, "left", position, rider.token, claims
            )
            sizes.add(len(built.payload))
    assert sizes == {4042}


# --- Statements ---


def answers(bench: Bench) -> list[tuple[proto.Command, bytes]]:
    """Genuine answers: a challenge, moving, idle, a refusal."""

    def command(position, moving=None):
        rider = bench.context.rider
        key = bench.encryption.public_key()
        return proto.build_command(rider.device, key, VEHICLE, "left", position, rider.token, moving)

    ask = command("unknown")
    asked = bench.statuses("left", ask.payload)[0]
    statement = proto.read_status(asked, bench.signing.public_key())
    proof = proto.beacon_proof(1, statement["clock"], minor=bench.context.minor("left"))
    move = command("open", proto.permission(statement, proof))
    moving = bench.statuses("left", move.payload)[0]
    bench.clock += 1_000
    idle = bench.controller.finish_motions(bench.clock)[0][1]
    again = command("close", proto.permission(statement, proto.beacon_proof(1, statement["clock"])))
    refused = bench.statuses("left", again.payload)[0]
    return [(ask, asked), (move, moving), (move, idle), (again, refused)]


def test_an_answer_of_another_run_is_none_but_to_a_refused_stop(bench):
    _, (move, _), (_, idle), (again, refused) = answers(bench)
    key, other = bench.signing.public_key(), {"epoch": proto.base64url(bytes(16))}
    for command, status in ((move, idle), (again, refused)):
        with pytest.raises(proto.ProtocolError):
            proto.read_answer(proto.status_of(proto.read_status(status, key) | other, bench.signing), key, command)
    rider = bench.context.rider
    claims = proto.stopping(proto.read_status(idle, key))
    arguments = bench.encryption.public_key(), VEHICLE, "left", "stop", rider.token, claims
    stop = proto.build_command(rider.device, *arguments)
    (stopped,) = bench.statuses("left", stop.payload)
    expired = other | {"refusal": {"code": "expired", "retry": True}}
    for more, is_believed in (({}, True), (other, False), (expired, True)):
        status = proto.status_of(proto.read_status(stopped, key) | more, bench.signing)
        try:
            assert (proto.read_answer(status, key, stop) is not None) == is_believed
        except proto.ProtocolError:
            assert not is_believed


def test_genuine_answers_are_believed(bench):
    read = [proto.read_answer(status, bench.signing.public_key(), command) for command, status in answers(bench)]
    assert "challenge" in read[0]
    assert [statement["phase"] for statement in read] == ["idle", "moving", "idle", "idle"]
    assert read[3]["refusal"] == {"code": "replayed", "retry": False}


@pytest.mark.parametrize("forgery", forgeries.FORGERIES, ids=str)
def test_forgery_is_not_believed(forgery, bench):
    genuine, tried = answers(bench), 0
    for index, (command, status) in enumerate(genuine):
        earlier = genuine[0 if index else 1][1]
        try:
            forged = forgery.build(forgeries.Genuine(status, bench.signing, earlier))
        except forgeries.Unavailable:
            continue
        tried += 1
        try:
            assert proto.read_answer(forged, bench.signing.public_key(), command) is None
        except proto.ProtocolError:
            pass
    if not tried:
        pytest.skip("there is nothing to forge so")


@pytest.mark.parametrize("lie", forgeries.LIES, ids=str)
def test_lie_outside_the_statement_is_not_heard(lie, bench):
    for command, status in answers(bench):
        told = lie.build(forgeries.Genuine(status, bench.signing, status))
        key = bench.signing.public_key()
        assert proto.read_answer(told, key, command) == proto.read_answer(status, key, command)


@pytest.mark.parametrize("newer", forgeries.NEWER, ids=str)
def test_what_a_later_version_adds_is_believed(newer, bench):
    key = bench.signing.public_key()
    for command, status in answers(bench):
        statement = proto.read_answer(newer.build(forgeries.Genuine(status, bench.signing, status)), key, command)
        assert statement["phase"] == proto.read_answer(status, key, command)["phase"]


def test_words_that_are_not_known_are_kept(bench):
    key = bench.signing.public_key()
    (_, asked), *_ = answers(bench)
    plain = {n: v for n, v in proto.read_status(asked, key).items() if n not in ("challenge", "policy")}
    for more in (
        {"phase": "deploying"},
        {"phase": "deploying", "fault": "tired"},
        {"phase": "fault", "fault": "tired"},
        {"refusal": {"code": "token_revoked", "retry": True}},
    ):
        statement = proto.read_status(proto.status_of(plain | more, bench.signing), key)
        assert statement == plain | more
        assert proto.is_at_rest(statement) == (statement["phase"] != "deploying")


# --- The worked example of the page ---


def test_example_is_the_pages():
    values = make_example.example()
    page = make_example.PAGE.read_text()
    assert json.loads((make_example.HERE / "example.json").read_bytes()) == values
    blocks = dict(re.findall(r"^```(?:json|text) (\S+)\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL))
    shown = {name: json.loads(text) if text.startswith(("{\n", "[\n")) else text for name, text in blocks.items()}
    assert shown == {name: value for name, value in values.items() if not name.endswith("-thumbprint")}


def test_example_of_beacon_tag_and_code():
    values = make_example.example()
    secret = proto.from_base64url(values["beacon-secret"]["k"])
    for each in values["beacon-minors"]["minors"]:
        assert proto.rotating_minor(secret, "left", 8, each["time"]) == each["minor"]
    keys = (bytes.fromhex(values["tag-keys"][name]) for name in ("meta_read_key", "file_read_key"))
    assert proto.read_tag_uri(values["tag-uri"], *keys) == (VEHICLE, "left", values["tag-keys"]["uid"], 61)
    claims, operator = proto.read_code(values["vehicle-code"])
    assert (claims, proto.jwk(operator)["x"]) == (values["vehicle-code-claims"], values["operator-key"]["x"])


CODE = make_example.example()["vehicle-code-claims"]


@pytest.mark.parametrize("name", CODE)
def test_code_without_a_member_or_with_another_is_refused(name):
    key = Ed25519PrivateKey.generate()
    for claims in (
        {each: value for each, value in CODE.items() if each != name},
        CODE | {name: None},
        CODE | {name: ""},
        CODE | {name: []},
        CODE | {name: -1},
        CODE | {"x": 1},
    ):
        with pytest.raises(proto.ProtocolError):
            proto.read_code(proto.sign_code(claims, key))


@pytest.mark.parametrize("inside", [False, True], ids=["code", "step"])
def test_code_with_an_extension_is_read_and_with_a_critical_one_refused(inside):
    key = Ed25519PrivateKey.generate()

    def extended(members):
        steps = [CODE["steps"][0] | members, *CODE["steps"][1:]]
        return proto.sign_code(CODE | ({"steps": steps} if inside else members), key)

    assert proto.read_code(extended({"ext": {"x": 1}}))[0]["uuid"] == CODE["uuid"]
    for members in ({"ext": {"x": 1}, "crit": ["x"]}, {"crit": ["x"]}, {"ext": 1}, {"ext": {"x": 1}, "crit": []}):
        with pytest.raises(proto.ProtocolError):
            proto.read_code(extended(members))


def test_code_by_another_operator_is_refused_once_there_is_one():
    key, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    text = proto.sign_code(CODE, key)
    assert proto.read_code(text, key.public_key())[0] == CODE
    with pytest.raises(proto.ProtocolError):
        proto.read_code(text, other.public_key())
    # In the other's name, and by the other under this one's key.
    header = proto.to_json(proto.vehicle_header(other.public_key()))
    for forged in (proto.sign(key, header, proto.to_json(CODE)), proto.sign(other, header, b"{}")):
        with pytest.raises(proto.ProtocolError):
            proto.read_code(forged)


def test_example_is_believed_by_a_controller():
    values, now = make_example.example(), make_example.NOT_BEFORE + 60
    keys = (make_example.ENCRYPTION, make_example.SIGNING, make_example.OPERATOR.public_key())
    controller = Controller(VEHICLE, {"left": 1, "right": 2}, *keys, epoch=values["challenge-claims"]["epoch"])
    proto.check_token(values["token"], keys[2], now, VEHICLE, "left")
    for name, clock in {"unknown": 61_250, "open": 61_300}.items():
        status = controller.receive("left", values[f"{name}-command"].encode(), False, clock, now)[0]
        assert "refusal" not in proto.read_status(status, keys[1].public_key())
        device = values["device-key"]["x"]
        controller.challenges = {values["challenge-claims"]["challenge"]: (device, "left", clock)}


# --- A link (2.2) ---


def test_frames_in_pieces():
    frames = [(proto.COMMAND, "left", b"abc"), (proto.NOTICE, "", b"x"), (proto.ANSWER, "left", bytes(8000))]
    data = b"".join(proto.frame(*each) for each in frames) + b"\0\1\x7f"
    for size in (1, 3, 1024):
        stream, read = bytearray(), []
        for start in range(0, len(data), size):
            stream += data[start : start + size]
            read += proto.take_frames(stream)
        assert read == frames and not stream


@pytest.mark.parametrize("data", ["0000", "21ff", "0001" "01", "0002" "0100", "0003" "0105" "6c", "0003" "0301" "61"])
def test_frames_of_another_form_end_the_link(data):
    with pytest.raises(proto.ProtocolError):
        proto.take_frames(bytearray.fromhex(data))


def test_an_answer_is_for_the_device_that_asked():
    controller = X25519PrivateKey.generate()
    asked, other = (proto.seal(controller.public_key(), b"a question") for _ in range(2))
    assert proto.from_brief(controller.public_key(), proto.brief(asked)) == asked
    key = proto.answer_key(controller, asked)
    assert key == asked.export(b"stepctl answer", 32)
    sealed = proto.seal_answer(key, b"{}")
    assert proto.open_answer(key, sealed).strip() == b"{}"
    assert proto.open_answer(proto.answer_key(controller, other), sealed) is None
