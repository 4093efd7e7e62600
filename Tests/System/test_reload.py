"""SIGHUP: stepd reads tags and policy again, and nothing else happens. And `stepd --check`, which looks at dates."""

import signal

import pytest

from certificates import reissue
from programs import STEPD, Running
from vehicle import TRAVEL_S

READ = "read the configuration again"


def reload(vehicle, text: str = READ) -> None:
    before = vehicle.stepd.said
    vehicle.stepd.signal(signal.SIGHUP)
    vehicle.stepd.says(text, after=before)


def test_a_new_policy_holds_at_once_and_nothing_is_interrupted(vehicle, alice):
    assert alice.moves("open", "left").status == 0
    vehicle.edit("stepd.toml", static=False)
    # A policy that could never let a step move is no policy.
    reload(vehicle, "[policy] static: false")
    assert alice.moves("close", "left").status == 0
    vehicle.edit("stepd.toml", static=True, proofs=["nfc"])
    process = vehicle.stepd.process.pid
    reload(vehicle)
    refused = alice.moves("open", "left", "--json")
    assert refused.status == 3, "the challenge tells the rider's program which proofs count"
    vehicle.edit("stepd.toml", proofs=["beacon", "nfc"])
    reload(vehicle)
    assert alice.moves("open", "left").status == 0
    assert vehicle.stepd.lives and vehicle.stepd.process.pid == process
    assert [motion[2] for motion in vehicle.motions] == ["open", "close", "open"]


def test_it_does_not_end_a_motion_nor_the_program(new_vehicle):
    slow = new_vehicle("slow")
    slow.takes_long(8)
    slow.starts_all()
    alice = slow.rider("alice")
    opening = alice.starts_to_move("open", "left")
    opening.says("moving")
    for _ in range(5):
        slow.stepd.signal(signal.SIGHUP)
    reload(slow)
    assert opening.ends().status == 0
    assert slow.stepd.lives and slow.motions == [("left", "close", "open")]


def test_files_that_are_wrong_change_nothing(vehicle, alice):
    # What the rider hears is made from that file, too.
    vehicle.radio("left")
    file = vehicle.folder / "vehicle.toml"
    good = file.read_text()
    file.write_text("nonsense")
    reload(vehicle, "the former configuration stays in force")
    assert alice.moves("open", "left").status == 0
    # Another vehicle is none of its business.
    file.write_text(good.replace('id = "left"', 'id = "middle"'))
    reload(vehicle, "the former configuration stays in force")
    file.write_text(good)
    vehicle.edit("stepd.toml", travel_s=TRAVEL_S + 1)
    reload(vehicle, "restart stepd to apply what else has changed: [servo]")
    with open(vehicle.folder / "stepd.toml", "a") as text:
        text.write('\n[metrics]\nfile = "stepd.prom"\n')
    car = vehicle.folder / "vehicle.toml"
    car.write_text(car.read_text().replace("port = ", "port = 1 # "))
    reload(vehicle, "what else has changed: [servo], [metrics], the vehicle's broker")
    car.write_text(good)
    assert alice.moves("close", "left").status == 0


def test_a_list_of_tags_is_taken_over(vehicle, alice):
    file = vehicle.folder / "vehicle.toml"
    file.write_text(file.read_text().replace("major = 1\n", 'major = 1\ntags = ["04A1B2C3D4E5F6"]\n'))
    reload(vehicle)
    assert alice.types("status").status == 0 and vehicle.stepd.lives


@pytest.mark.parametrize(
    ("days", "status", "text"),
    [
        (31, 0, ""),
        (9.5, 0, "stepd: warning: {}/tls/controller.pem: the certificate expires in 9 days; {}\n"),
        (-30.5, 78, "stepd: error: {}/tls/controller.pem: the certificate expired 30 days ago; {}\n"),
    ],
)
def test_check_tells_of_certificates_that_end(parked, stepctl, transcript, tmp_path, days, status, text):
    reissue(parked.folder, parked.folder / "tls/controller.pem", (-400, days))
    arguments = [STEPD, "--config", parked.folder / "stepd.toml", "--check"]
    ended = Running(arguments, tmp_path / "check.log", stepctl.environment, transcript).ends()
    said = text.format(parked.folder, "renew it: `stepctl provision renew DIR`")
    assert (ended.status, ended.stdout, ended.stderr) == (status, "", said)
