"""Writes samples of what each parser should accept, for the fuzzers to begin with: seeds.py FOLDER."""

import json
import pathlib
import shutil
import sys

seeds, example = pathlib.Path(sys.argv[1]), json.load(open("Tests/Peers/example.json"))
for name in (
    "advertisement base64url bridge btsnoop claims code command controller evaluation feed fleet geojson gps h4 hci journal json "
    "keys link ndef nfc ntag424 obd proof qr serve statement tags type2 type4 vehicle words"
).split():
    (seeds / name).mkdir(parents=True, exist_ok=True)
for capture in pathlib.Path("Tests/Fixtures/captures").glob("*.btsnoop"):
    shutil.copy(capture, seeds / "btsnoop")
shutil.copy("Tests/Peers/example.json", seeds / "json")
(seeds / "command/open").write_text(example["open-command"])
(seeds / "command/token").write_text(example["token"])
(seeds / "link/frames").write_bytes(b"\0\x2e\1\4left" + bytes(40) + b"\0\4\3\0no" + b"\0\1\x7f")
(seeds / "statement/idle").write_text(example["idle-status"])
(seeds / "proof/tag").write_text(example["tag-uri"])
(seeds / "proof/label").write_text('{"uuid":"5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90","stepId":1}')
(seeds / "proof/uri").write_text("stepctl:5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90/left")
(seeds / "code/vehicle").write_text(example["vehicle-code"])
(seeds / "qr/codes").write_bytes(b"c\0\5hellof\0\1\2e\0\0")
(seeds / "tags/one").write_text(json.dumps([example["tag-keys"]]))
frame = bytes.fromhex("0201061aff4c000215") + bytes(range(16)) + bytes.fromhex("00010007c5")
report = b"\x02\x01\x03\x01" + bytes(6) + bytes([len(frame)]) + frame + b"\xc4"
(seeds / "nfc/select").write_bytes(bytes.fromhex("000103" "000c8300070044" "04a1b2c3d4e580"))
# AN12196, table 14.
challenge = "a04c124213c186f22399d33ac2a3021591af"
proof = "3fa64db5446d1f34cd6ea311167f5e4985b89690c04a05f17fa7ab2f08120663"
(seeds / "ntag424/authentication").write_bytes(bytes.fromhex(challenge + proof + "9100"))
event = b"\x3e" + bytes([len(report)]) + report
(seeds / "advertisement/legacy").write_bytes(event)
(seeds / "advertisement/call").write_bytes(b"\x11\x07" + bytes(range(16)))
(seeds / "h4/legacy").write_bytes(b"\x04" + event)
messages = json.load(open("Tests/Fixtures/ndef/ndeflib.json"))
for number, message in enumerate(messages):
    (seeds / f"ndef/{number}").write_bytes(bytes.fromhex(message["bytes"]))
for image in pathlib.Path("Tests/Fixtures/tags").glob("*.bin"):
    for chip in range(5):
        (seeds / f"type2/{image.stem}-{chip}").write_bytes(bytes([chip]) + image.read_bytes())
answers = ["9000", "9000", "000f20003b00340406e104040000009000", "9000", "00079000", "d101035402656e9000"]
(seeds / "type4/read").write_bytes(b"".join(bytes([len(a) // 2]) + bytes.fromhex(a) for a in answers))
(seeds / "vehicle/full").write_text(
    'name = "v"\nuuid = "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"\ntopic = "a/b"\n[broker]\nhost = "h"\nca = "ca.pem"\n'
    '[[steps]]\nid = "left"\nside = "left"\nmajor = 1\n')
(seeds / "controller/full").write_text(
    'vehicle = "vehicle.toml"\n[broker]\ncert = "c"\nkey = "k"\n[keys]\nencryption = "e"\nsigning = "s"\n'
    f'operator = "{"A" * 43}"\n[servo]\ndriver = "simulated"\n')
(seeds / "base64url/value").write_text("AAECAwQF-_8")
(seeds / "evaluation/positions").write_text(
    'capture,side,distance_m,x_m,y_m,body,method\n"a ""b""",left,0.5,1,-2.5,yes,tape\nP2.btsnoop,right,10,,,no,\n')
(seeds / "evaluation/done").write_text('{"outcome":"done","position":"open","method":"nfc","duration_s":2.5}')
(seeds / "evaluation/refused").write_text('{"outcome":"refused","code":"refused","method":null,"duration_s":1}')
(seeds / "bridge/said").write_bytes(b"\0\1c\0\3p{}\0\x0ff\0\5\0\0\0\0\0\0\0\0\0\1{}\0\5e\1why")
(seeds / "bridge/address").write_text("wss://localhost:8443/traffic")
(seeds / "serve/said").write_bytes(b"\0\3l\x20\xfb\0\3nhi\0\x31s" + bytes(48) + b"\0\5x\2why")
(seeds / "serve/map").write_text(
    '{"sections":[{"section":"S1","from":{"latitude":48,"longitude":9},"to":{"latitude":48.01,"longitude":9}}]}')
(seeds / "serve/role").write_text("publisher:S1,S2")
(seeds / "serve/location").write_text(
    '{"timestamp":1,"locationAccuracy":5,"course":-1,"speed":-1,"speedAccuracy":-1,"longitude":9,"latitude":48,"radius":10}')
(seeds / "gps/walk").write_text("".join(
    f'{{"class":"TPV","mode":3,"lat":48.77{second:02d},"lon":9.18,"eph":8.5,"track":12.5,"speed":1.4}}\r\n'
    for second in range(12)))
(seeds / "gps/others").write_text(
    '{"class":"DEVICES","devices":[]}\n{"class":"TPV","mode":1}\n{"class":"ERROR","message":"no"}\n')
(seeds / "obd/car").write_bytes(
    b"\x14\xff\1ATZ\r\r\rELM327 v1.5\r\r>\xff\x14\xff\1ATE0\rOK\r\r>\xff" + b"\1OK\r\r>\xff" * 3
    + b"\1410D00\r\r>\xff\x0a\xff\1SEARCHING...\r410D21\r\r>")
(seeds / "obd/serial").write_text("/dev/ttyUSB0:115200")
(seeds / "obd/network").write_text("tcp:[::1]:35000")
(seeds / "feed/frame").write_text(json.dumps({
    "section": "S1", "timestampSecs": "1700000000", "timestampNsecs": "40000000", "vehicles": [{
        "id": "a", "category": "bicycle", "position": {"x": 48.7758, "y": "9.1829", "z": 0},
        "speed": {"x": 4.2, "y": -1, "z": 6.1}, "shape": {"length": 1.8, "width": 0, "height": 0},
        "scenarios": {"wrongWay": True, "tailGateLevel": 2}}],
    "bridge": {"received": 1700000000.1, "sent": 1700000000.2, "echo": 1700000000, "echoReceived": 1700000000.1}}))
booking = {"id": "a-1", "vehicle": "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90", "name": "v", "from": "2026-11-23T08:00:00Z",
           "to": "2026-11-23T10:00:00Z", "state": "booked", "steps": ["left"], "etag": "e"}
(seeds / "fleet/booking").write_text(json.dumps(booking))
(seeds / "fleet/vehicle").write_text(json.dumps(
    {"id": booking["vehicle"], "name": "v", "state": "on_trip", "free": False, "next": [
        {"from": "2026-11-23T08:00:00.5Z", "to": "2026-11-23T10:00:00Z"}],
     "steps": [{"id": "left", "side": "left", "major": 1}]}))
(seeds / "fleet/zone").write_text(json.dumps({"id": booking["vehicle"], "name": "z", "parking": True, "square_metres": 9}))
(seeds / "fleet/event").write_text(json.dumps(
    {"time": "2026-11-23T08:00:00Z", "kind": "ended", "step": "left", "position": "open", "method": "beacon",
     "place": {"latitude": 48.5, "longitude": 9, "error_m": 2.5}}))
square = [[9, 48], [9.01, 48], [9.01, 48.01], [9, 48.01], [9, 48]]
hole = [[9.002, 48.002], [9.004, 48.002], [9.004, 48.004], [9.002, 48.002]]
(seeds / "geojson/polygon").write_text(json.dumps({"type": "Polygon", "coordinates": [square, hole]}))
(seeds / "geojson/several").write_text(json.dumps({"type": "Feature", "geometry": {"type": "MultiPolygon", "coordinates": [
    [square], [[[9.02, 48], [9.03, 48], [9.03, 48.01], [9.02, 48]]]]}}))
(seeds / "fleet/taken").write_text(json.dumps({"code": "taken", "detail": "d", "next": [
    {"from": "2026-11-23T08:00:00Z", "to": "2026-11-23T10:00:00Z"}]}))
(seeds / "fleet/login").write_text(json.dumps({"server": "https://a", "ca": None, "email": "e", "tokens": {
    "access": "a", "expires": 1, "refresh": "r", "token_endpoint": "https://a/t", "revocation_endpoint": "https://a/r"}}))
(seeds / "feed/location").write_text(
    '{"timestamp":1,"locationAccuracy":5,"course":-1,"speed":-1,"speedAccuracy":-1,"longitude":9,"latitude":48,"radius":10}')
(seeds / "feed/scene").write_text(
    '{"latitude":48,"longitude":9,"heading_deg":93.5,"length_m":4.6,"width_m":1.9,"steps":[{"id":"left","side":"left",'
    '"from_m":1.6,"to_m":2.6,"reach_m":0.4}],"feed":{"delay_s":0.5,"seed":1}}')
for number, word in enumerate(("left", "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90", "arena/car", "btsnoop:a", "h4:tcp:h:1")):
    (seeds / f"words/{number}").write_text(word)
for name, value in example.items():
    if isinstance(value, dict) and "kty" in value:
        (seeds / f"keys/{name}").write_text(json.dumps(value))
    if name.endswith("-claims"):
        kind = {"token-claims": "t", "vehicle-code-claims": "v", "notice-claims": "n", "event-claims": "e"}.get(name) or ("s" if "seq" in value else "c")
        claims = {member: part for member, part in value.items() if (kind, member) != ("c", "token")}
        (seeds / f"claims/{name}").write_text(kind + json.dumps(claims))
(seeds / "journal/two").write_text(
    '{"left":{"position":"open","challenge":"AAECAwQFBgcICQoLDA0ODw"},'
    '"right":{"position":"close","motion":"open","fault":"timeout"},"tag counters":{"04DE5F1EACC040":7}}')
answers = ["0e0401030c00", "0e0c0103100000000000600000", "0e0c01032000" + "00" * 8, "0e05013b200002", "0e0401422000"]
(seeds / "hci/scan").write_bytes(b"".join(bytes([len(a) // 2]) + bytes.fromhex(a) for a in answers))

# What fuzzing has found: inputs that reached new code, or made a parser crash once. An input a line, in hexadecimal.
for file in pathlib.Path("Tests/Fuzz/corpus").glob("*.hex"):
    for number, line in enumerate(file.read_text().split()):
        (seeds / file.stem / f"found-{number}").write_bytes(bytes.fromhex(line))
