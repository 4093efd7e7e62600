#!/usr/bin/env bash
# Fuzzes every parser of bytes from outside for SECONDS_EACH (60), beginning with samples of what it should accept.
# What it finds is kept in .build/fuzz.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

export STEPCTL_FUZZ=1 SWIFT_BACKTRACE=enable=no
swift build --scratch-path .build/fuzz --product Fuzz -Xswiftc -sanitize=fuzzer
seeds=.build/fuzz/seeds
mkdir -p "$seeds"/{advertisement,btsnoop,h4,json,command,statement,proof,code,tags,vehicle,controller}
mkdir -p "$seeds"/{ndef,nfc,ntag424,qr,type2,type4}
cp Tests/Fixtures/captures/*.btsnoop "$seeds/btsnoop/"
cp Tests/Peers/example.json "$seeds/json/"
python3 - "$seeds" <<'PYTHON'
import json, pathlib, sys
seeds, example = pathlib.Path(sys.argv[1]), json.load(open("Tests/Peers/example.json"))
(seeds / "command/open").write_text(example["open-command"])
(seeds / "command/token").write_text(example["token"])
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
PYTHON
for target in "$seeds"/*; do
  name=$(basename "$target")
  echo "== $name"
  FUZZ=$name .build/fuzz/debug/Fuzz -max_total_time="${SECONDS_EACH:-60}" -max_len=16384 -rss_limit_mb=512 \
    -artifact_prefix=".build/fuzz/$name-" "$target" 2>&1 | tail -n 1
done
