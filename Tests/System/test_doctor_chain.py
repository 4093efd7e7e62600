"""`doctor` beyond the radio: files, token, broker, controller; what is broken, and the line that mends it."""

import re
import shlex
import subprocess
import time

import pytest

from certificates import reissue
from programs import AS_ANYBODY, wait_until

AREAS = ("vehicle", "broker", "controller")


def examined(rider, *more) -> tuple[int, dict[str, dict]]:
    """The status, and each area's findings that are not ok, by their subjects. The clock is this machine's, and so is
    the delay, which a busy machine has."""
    ended = rider.types("doctor", *AREAS, "--json", "--timeout", "10", *more)
    report = ended.json
    assert report["exit"] == ended.status
    assert (report["state"] == "broken") == (ended.status != 0)
    return ended.status, {
        area["area"]: {
            finding["subject"]: finding
            for finding in area["findings"] if finding["state"] != "ok" and finding["subject"] not in ("clock", "delay")
        }
        for area in report["areas"]
    }


def test_a_vehicle_that_works_has_nothing_broken(shared_rider):
    assert examined(shared_rider) == (0, {"vehicle": {}, "broker": {}, "controller": {}})
    lines = shared_rider.types("doctor", *AREAS).lines
    assert any("TLSv1.3" in line for line in lines)
    assert any("left closed, right closed" in line for line in lines)
    version = shared_rider.vehicle.stepctl("--version").lines[0]
    assert any(f"stepd {version}, runs since" in line for line in lines)
    assert any("the vehicle's: 0.0 s" in line and "±" in line for line in lines)


def test_nothing_moves_and_the_controller_sees_a_question_alone(shared_vehicle, shared_rider):
    assert examined(shared_rider)[0] == 0
    assert shared_vehicle.is_unmoved()


def test_a_controller_that_is_gone(vehicle, alice):
    vehicle.stepd.close()
    status, found = examined(alice)
    assert (status, found["broker"], found["controller"]["answer"]["state"]) == (69, {}, "warning")
    assert "offline" in found["controller"]["answer"]["text"]


def test_a_broker_that_is_gone(vehicle, alice):
    vehicle.broker.kill()
    status, found = examined(alice)
    assert status == 69 and "Connection refused" in found["broker"]["connection"]["text"]
    assert found["controller"]["answer"]["text"] == "not asked: there is no connection to the broker"


def test_a_key_that_others_can_read_and_the_line_that_mends_it(vehicle, alice):
    (alice.folder / "device.jwk").chmod(0o644)
    status, found = examined(alice)
    assert status == 77
    subprocess.run(shlex.split(found["vehicle"]["keys"]["remedy"]), check=True, cwd=vehicle.stepctl.home)
    assert examined(alice)[0] == 0


def test_a_token_that_is_damaged_is_at_fault_and_not_the_controller(vehicle, alice):
    token = alice.folder / "token.jwt"
    text = token.read_text()
    end = len(text.strip()) - 8
    token.write_text(text[:end] + ("A" if text[end] != "A" else "B") + text[end + 1 :])
    status, found = examined(alice)
    assert status == 65 and set(found) == {"vehicle"}
    assert found["vehicle"]["token"]["text"] == f"{token} is damaged: the signature is not the operator's"
    assert found["vehicle"]["token"]["remedy"] == "stepctl config import FILE"


def test_a_token_of_another_operator_is_told(vehicle, alice, new_vehicle):
    other = new_vehicle("other")
    file = alice.file.read_text()
    keys = [re.search(r'^operator = "(.*)"$', text, re.MULTILINE)[1] for text in (file, (other.folder / "vehicle.toml").read_text())]
    alice.file.write_text(file.replace(*keys))
    status, found = examined(alice)
    assert status == 0, "a controller may know it by now"
    assert found["vehicle"]["token"]["text"] == "it is not signed by the operator that the vehicle file names"


def test_a_token_that_has_ended(vehicle):
    dora = vehicle.rider("dora", "--for", "1s")
    wait_until(lambda: dora.types("--json").json["vehicles"][0]["expires"] <= time.time(), "its end")
    status, found = examined(dora)
    assert (status, found["vehicle"]["token"]["state"]) == (77, "broken")
    assert found["controller"], "the vehicle refuses it, too"


def test_a_clock_that_is_ahead_is_the_cause_and_the_token_is_not_called_broken(vehicle, hasty):
    dora = vehicle.rider("dora", "--for", "1h")
    ahead = hasty(1) | {"SHIFT": "10800"}
    ended = dora.types("doctor", *AREAS, "--json", **ahead)
    files = ended.json["areas"][0]
    assert (ended.status, files["area"], files["state"]) == (0, "vehicle", "warning"), ended
    first, *others = files["findings"]
    assert (first["subject"], first["state"]) == ("clock", "warning")
    assert first["text"].startswith("this computer's is 3 h ahead of the vehicle's, by which the token is valid")
    assert first["remedy"] in (None, "timedatectl set-ntp true")
    assert all(finding["state"] == "ok" for finding in others), others
    assert "enroll" not in ended.stdout
    # A busy computer may add a warning about its delay.
    assert re.fullmatch(r"works; (one warning|\d warnings) \(clock\b.*\)", dora.types("doctor", *AREAS, **ahead).lines[-1])
    # As `open` does.
    assert dora.types("status", **ahead).status == 0


def test_a_token_of_tomorrow_is_waited_for_and_not_asked_for_again(vehicle):
    day = time.strftime("%Y-%m-%d", time.localtime(time.time() + 172_800))
    dora = vehicle.rider("dora", "--from", f"{day}T07:00", "--for", "1h")
    status, found = examined(dora)
    token = found["vehicle"]["token"]
    assert (status, token["state"], token["remedy"]) == (0, "warning", None)
    assert re.search(r"from \S+ 07:00 until \S+ 08:00$", token["text"]), "when it begins, and when it ends"
    assert found["broker"] == {} and found["controller"]["answer"]["text"].startswith("it takes the token from ")


@pytest.mark.parametrize(
    "begin,end,text",
    [(-30, -1, r"; ask the operator for new access$"), (700, 900, r": not valid before .*: this computer's clock is ")],
)
def test_a_certificate_of_another_time_names_no_command_that_does_not_help(vehicle, begin, end, text):
    dora = vehicle.rider("dora")
    reissue(vehicle.folder, dora.folder / "rider.pem", (begin, end))
    status, found = examined(dora)
    certificate = found["vehicle"]["certificate"]
    assert (status, certificate["state"]) == (78, "broken") and re.search(text, certificate["text"])
    assert certificate["remedy"] in (None, "timedatectl set-ntp true")
    assert begin > 0 or certificate["remedy"] is None


@pytest.mark.parametrize("area", ["broker", "controller"])
def test_without_a_vehicle_that_is_what_is_said(stepctl, area):
    ended = stepctl("doctor", area, "--json")
    (found,) = ended.json["areas"]
    assert (ended.status, found["area"], found["state"]) == (0, "vehicle", "warning")


def test_the_vehicles_own_computer_names_each_servos_chip(new_vehicle, stepctl):
    """It is the one where stepd.toml lies beside the vehicle's file."""
    vehicle = new_vehicle("car", "--servo", "pwm")
    chip = vehicle.folder / "chips/pwmchip0"
    chip.mkdir(parents=True)
    vehicle.edit("stepd.toml", root="chips")

    def hardware(**more) -> tuple[int, list[tuple]]:
        ended = stepctl("doctor", "controller", "--json", "--vehicle", vehicle.folder / "vehicle.toml", **more)
        (area,) = ended.json["areas"]
        assert [area["area"], area["findings"][-1]["text"]] == ["controller", "not asked: that takes a rider's files"]
        return ended.status, [tuple(f.values()) for f in area["findings"][:-1]]

    (chip / "npwm").write_text("2\n")
    text = "the servo of the step {} is at channel {} of no device (pwmchip0, 2 channels)"
    found = [("hardware", "ok", text.format(step, channel), None) for channel, step in enumerate(("left", "right"))]
    assert hardware() == (0, found)
    (chip / "npwm").write_text("1\n")
    text = "no device (pwmchip0, 1 channels) has no channel 1, it has 1"
    assert hardware() == (66, [("hardware", "broken", text, None)])
    # The service may have rights that this user lacks.
    file = vehicle.folder / "keys/tags.json"
    file.chmod(0)
    remedy = f"sudo stepd --check --config {vehicle.folder}/stepd.toml"
    text = f"cannot open {file}: Permission denied"
    assert hardware(prefix=AS_ANYBODY) == (0, [("hardware", "warning", text, remedy)])
