"""`calibrate`: someone stands where it asks, and the vehicle file gets what each beacon is received with at 1 m."""

import math
import os
import random
import re
import signal
import subprocess
from pathlib import Path

import pytest

import captures
from adapter import Adapter
from captures import OWNERS_FILE, VEHICLE
from programs import AS_ANYBODY, STEPCTL, wait_until
from terminal import Terminal

POSITIONS = [(distance, carry) for distance in ("0.3", "1", "3") for carry in ("hand", "pocket")]
MAJORS = {"left": 1, "right": 2}


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "van.toml").write_text(OWNERS_FILE)
    (tmp_path / "van.toml").chmod(0o640)
    (tmp_path / "heard").mkdir()
    return tmp_path


@pytest.fixture
def calibrate(stepctl, folder):
    def run(*arguments, **more):
        return stepctl("calibrate", "--vehicle", "van.toml", *arguments, folder=folder, **more)

    return run


def level(power: float, distance: str, carry: str) -> float:
    """dBm, by the law of free space, and a body that takes 4 dB."""
    return power - 20 * math.log10(float(distance)) - (4 if carry == "pocket" else 0)


def record_positions(folder: Path, powers: dict[str, float], positions=POSITIONS, seconds: float = 10, seed: int = 1):
    """Captures at positions in front of steps whose beacons have these powers at 1 m; they claim -59 dBm."""
    chance = random.Random(seed)
    for step, power in powers.items():
        for distance, carry in positions:
            packets = []
            for tick in range(round(seconds * 10)):
                own, other = level(power, distance, carry), -85
                for major, mean in ((MAJORS[step], own), (3 - MAJORS[step], other)):
                    rssi = round(mean + chance.gauss(0, 3))
                    frame = captures.frame(VEHICLE, major)
                    packets.append(captures.record(captures.reports(frame, rssi, major), tick / 10))
            name = f"{step}-{distance}-{carry}.btsnoop"
            (folder / "heard" / name).write_bytes(captures.HEADER + b"".join(packets))


def expected(text: str, left: int, right: int) -> str:
    text = text.replace("# blue\n", f"# blue\n  measured_power = {left}\n")
    return text.replace("measured_power = -59 # a guess", f"measured_power = {right} # a guess")


# --- From captures ---


@pytest.mark.arm64
def test_it_finds_the_powers_and_notes_them_in_the_file_and_nothing_else(calibrate, folder):
    record_positions(folder, {"left": -72, "right": -50})
    ended = calibrate("--captures", "heard", "--yes", "--json")
    assert ended.status == 0, ended
    result = ended.json
    assert result["written"] is True
    left, right = result["steps"]
    assert (left["step"], right["step"]) == ("left", "right")
    # In the pocket 4 dB are missing, and each half counts the same.
    assert left["measured_power_dbm"] == pytest.approx(-74, abs=1)
    assert right["measured_power_dbm"] == pytest.approx(-52, abs=1)
    assert left["previous_power_dbm"] == right["previous_power_dbm"] == -59
    assert left["right_zone"] > left["right_zone_before"]
    assert [(position["distance_m"], position["carry"]) for position in left["positions"]] == [
        (float(distance), carry) for distance, carry in POSITIONS
    ]
    for position in left["positions"]:
        assert position["packets"] == 100
        assert position["residual_db"] == pytest.approx(2 if position["carry"] == "hand" else -2, abs=1.5)
    file = folder / "van.toml"
    assert file.read_text() == expected(OWNERS_FILE, left["measured_power_dbm"], right["measured_power_dbm"])
    assert file.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in folder.iterdir()) == ["heard", "van.toml"]


def test_what_it_wrote_is_what_locate_goes_by(calibrate, stepctl, folder):
    record_positions(folder, {"left": -75, "right": -75})
    where = ["locate", "--json", "--vehicle", "van.toml", "--radio", "btsnoop:heard/left-0.3-hand.btsnoop"]
    before = stepctl(*where, folder=folder).json
    assert calibrate("--captures", "heard", "--yes").status == 0
    after = stepctl(*where, folder=folder)
    assert before["zone"] != "immediate"
    assert (after.status, after.json["step"], after.json["zone"]) == (0, "left", "immediate")
    # And a second time there is nothing to write.
    again = calibrate("--captures", "heard", "--yes", "--json")
    assert (again.status, again.json["written"]) == (0, False)
    assert all(step["right_zone_before"] > 0.7 for step in again.json["steps"])


def test_a_dry_run_writes_nothing_and_asks_nothing(calibrate, folder):
    record_positions(folder, {"left": -72, "right": -50})
    ended = calibrate("--captures", "heard", "--dry-run", "--json")
    assert (ended.status, ended.json["written"]) == (0, False)
    assert (folder / "van.toml").read_text() == OWNERS_FILE


def test_a_value_that_stays_is_not_said_to_be_better_or_worse(calibrate, folder):
    # 4 dB less in the pocket: together -59 dBm, which the file has already.
    record_positions(folder, {"right": -57})
    arguments = ("--captures", "heard", "--step", "right")
    ended, told = calibrate(*arguments), calibrate(*arguments, "--json")
    (step,) = told.json["steps"]
    assert step["measured_power_dbm"] == step["previous_power_dbm"] == -59
    assert ended.stdout.splitlines()[-1] == f"right: correct zone {100 * step['right_zone_before']:.0f} %, unchanged"
    assert "was" not in ended.stdout and not told.json["written"]
    assert (folder / "van.toml").read_text() == OWNERS_FILE


@pytest.mark.parametrize(("answer", "writes"), [("y", True), ("", True), ("what?\nno", False), ("N", False)])
def test_it_asks_before_it_writes(calibrate, folder, answer, writes):
    record_positions(folder, {"left": -72, "right": -50})
    ended = calibrate("--captures", "heard", input=f"{answer}\n".encode())
    assert ended.status == 0
    assert "into van.toml? (n or s: not now, q: quit) [Y/n]" in ended.stderr
    assert ("wrote van.toml" in ended.lines) is writes
    assert ((folder / "van.toml").read_text() != OWNERS_FILE) is writes


def test_nobody_to_answer_means_no(calibrate, folder):
    record_positions(folder, {"left": -72, "right": -50})
    ended = calibrate("--captures", "heard")
    assert ended.status == 66
    assert ended.stderr.endswith("\nstepctl: error: no answer: standard input has ended\n")
    assert (folder / "van.toml").read_text() == OWNERS_FILE


def test_one_step_can_be_calibrated_alone_from_some_of_the_positions(calibrate, folder):
    record_positions(folder, {"left": -72}, [("0.3", "hand"), ("1", "hand"), ("3", "hand")])
    ended = calibrate("--captures", "heard", "--yes", "--step", "left", "--json")
    assert (ended.status, ended.json["written"]) == (0, True)
    assert ended.json["steps"][0]["measured_power_dbm"] == pytest.approx(-72, abs=1)
    assert "there is no heard/left-1-pocket.btsnoop" in ended.stderr
    missing = calibrate("--captures", "heard", "--yes", "--step", "middle")
    assert (missing.status, missing.error) == (64, "Van has no step middle: it has left, right")


def test_bad_recordings_are_left_out_and_too_few_good_ones_are_refused(calibrate, folder):
    record_positions(folder, {"left": -72, "right": -50})
    # Two are short, two were made at the wrong side.
    for name in ("left-0.3-hand", "left-0.3-pocket"):
        (folder / f"heard/{name}.btsnoop").write_bytes(
            captures.HEADER + captures.heard(VEHICLE, {1: -60, 2: -85}, 0, 2)
        )
    for name in ("left-1-hand", "left-3-hand"):
        file = folder / f"heard/{name}.btsnoop"
        file.write_bytes((folder / f"heard/{name.replace('left', 'right')}.btsnoop").read_bytes())
    ended = calibrate("--captures", "heard", "--yes")
    assert (ended.status, ended.stdout) == (65, "")
    assert "left-0.3-hand.btsnoop is left out: only 20 packets were heard, of at least 30\n" in ended.stderr
    assert "left-1-hand.btsnoop is left out: the right step is stronger by " in ended.stderr
    assert ended.error == "the left step cannot be calibrated: calibration needs 3 positions, and only 2 can be used"
    assert (folder / "van.toml").read_text() == OWNERS_FILE


def test_distances_that_were_not_kept_are_noticed(calibrate, folder):
    record_positions(folder, {"left": -60, "right": -60})
    near, far = folder / "heard/left-0.3-hand.btsnoop", folder / "heard/left-3-hand.btsnoop"
    content = near.read_bytes()
    near.write_bytes(far.read_bytes())
    far.write_bytes(content)
    ended = calibrate("--captures", "heard", "--yes")
    assert ended.status == 65
    assert "were the distances kept?" in ended.error


def test_what_makes_it_worse_is_not_written_unless_somebody_says_so(calibrate, folder):
    # Right as it is in hand; the pocket says something else altogether.
    record_positions(folder, {"left": -59}, [position for position in POSITIONS if position[1] == "hand"])
    for distance in ("0.3", "1", "3"):
        source = {"left": level(-85, distance, "hand")}
        content = captures.heard(VEHICLE, {1: round(source["left"])}, seconds=10)
        (folder / f"heard/left-{distance}-pocket.btsnoop").write_bytes(captures.HEADER + content)
    arguments = ("--captures", "heard", "--step", "left")
    ended = calibrate(*arguments, "--yes", "--json")
    assert (ended.status, ended.objects[0]["written"]) == (1, False)
    assert ended.error == "not written: the correct zone would be found less often than before"
    assert (folder / "van.toml").read_text() == OWNERS_FILE
    assert calibrate(*arguments, input=b"\n").status == 0
    assert (folder / "van.toml").read_text() == OWNERS_FILE
    assert calibrate(*arguments, input=b"y\n").status == 0
    assert (folder / "van.toml").read_text() != OWNERS_FILE


def test_a_torn_capture_and_a_folder_that_is_none_are_told(calibrate, folder):
    record_positions(folder, {"left": -72, "right": -50})
    file = folder / "heard/right-3-pocket.btsnoop"
    file.write_bytes(file.read_bytes()[:-5])
    ended = calibrate("--captures", "heard", "--yes")
    assert ended.status == 65
    assert ended.error.startswith("heard/right-3-pocket.btsnoop is damaged at byte ")
    assert calibrate("--captures", "none").status == 66
    (folder / "heard").chmod(0)
    kept = calibrate("--captures", "heard", "--yes", prefix=AS_ANYBODY)
    assert (kept.status, kept.error) == (77, "cannot open heard/left-0.3-hand.btsnoop: Permission denied")
    (folder / "heard").chmod(0o755)
    assert calibrate("--captures", "van.toml").status == 74
    assert (folder / "van.toml").read_text() == OWNERS_FILE


@pytest.mark.arm64
def test_random_bytes_in_captures_change_nothing_or_are_refused(calibrate, folder):
    chance = random.Random(2)
    for round_ in range(10):
        record_positions(folder, {"left": -72}, seconds=4)
        for file in (folder / "heard").iterdir():
            content = bytearray(file.read_bytes())
            for _ in range(30):
                content[chance.randrange(16, len(content))] = chance.randrange(256)
            file.write_bytes(content)
        ended = calibrate("--captures", "heard", "--step", "left", "--dry-run")
        assert ended.status in (0, 65), (round_, ended)


def test_what_was_measured_is_told_also_when_it_cannot_be_written(calibrate, folder):
    record_positions(folder, {"left": -72, "right": -50})
    folder.chmod(0o555)
    ended = calibrate("--captures", "heard", "--yes", "--json", prefix=AS_ANYBODY)
    folder.chmod(0o755)
    assert ended.status == 77
    measured, _ = ended.objects
    assert measured["written"] is False
    assert measured["steps"][0]["measured_power_dbm"] == pytest.approx(-74, abs=1)
    assert (folder / "van.toml").read_text() == OWNERS_FILE


def test_a_file_that_cannot_be_edited_is_told_before_anything_is_measured(calibrate, folder):
    # With one more digit the line would be longer than a line may be.
    text = OWNERS_FILE.replace("measured_power = -59 # a guess", "measured_power = 0 #".ljust(1024, "x"))
    (folder / "van.toml").write_text(text)
    ended = calibrate("--captures", "heard")
    assert (ended.status, ended.stdout) == (78, "")
    assert ended.error.endswith("[[steps]] cannot be edited as it is written; give each key a line of its own")
    assert calibrate("--captures", "heard", "--step", "left").status == 65  # nothing is in the folder


def test_a_link_stays_a_link_and_its_target_is_written(stepctl, folder):
    (folder / "link.toml").symlink_to("van.toml")
    record_positions(folder, {"left": -72, "right": -50})
    ended = stepctl("calibrate", "--vehicle", "link.toml", "--captures", "heard", "--yes", folder=folder)
    assert ended.status == 0
    assert (folder / "link.toml").is_symlink()
    assert "measured_power = -7" in (folder / "van.toml").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_the_owner_of_the_file_stays_its_owner_under_sudo(calibrate, folder):
    os.chown(folder / "van.toml", 1234, 4321)
    (folder / "van.toml").chmod(0o600)
    record_positions(folder, {"left": -72, "right": -50})
    assert calibrate("--captures", "heard", "--yes").status == 0
    status = (folder / "van.toml").stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (1234, 4321, 0o600)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--captures", "heard", "--radio", "hci0"),
        ("--yes", "--dry-run"),
        ("--seconds", "1"),
        ("--step", "a/b"),
        ("--radio", "btsnoop:heard/left-1-hand.btsnoop"),
    ],
    ids=" ".join,
)
def test_what_contradicts_itself_is_a_usage_error(calibrate, arguments):
    assert calibrate(*arguments).status == 64


# --- Guided ---


class Technician:
    """Reads what is asked and does it: answers, and stands where the beacons are heard at these levels."""

    def __init__(self, running, adapter, step="left"):
        self.running, self.adapter, self.step, self.read = running, adapter, step, 0

    def is_asked(self, question: str) -> "Technician":
        text = lambda: self.running.stderr.read_text()[self.read :]  # noqa: E731
        wait_until(lambda: question in text() or not self.running.lives, f"{question!r}; it said {text()!r}")
        assert question in text(), f"it ended: {text()!r}"
        self.read += text().index(question) + len(question)
        return self

    def answers(self, answer: str):
        self.running.process.stdin.write(f"{answer}\n".encode())
        self.running.process.stdin.flush()

    def goes(self, distance: str, left: float, right: float = -85, answer: str = ""):
        self.is_asked(f"{distance} m in front of the {self.step} step, in hand: press Enter")
        self.adapter.levels = {1: left, 2: right}
        self.answers(answer)

    def leaves_out(self, distance: str):
        self.is_asked(f"{distance} m in front of the left step, in a pocket").answers("s")


@pytest.fixture
def technician(stepctl, folder):
    with Adapter(folder / "socket", VEHICLE, {}, spread=2) as adapter:
        arguments = ["calibrate", "--vehicle", folder / "van.toml", "--radio", adapter.radio, "--step", "left"]
        running = stepctl.start(folder / "log", *arguments, "--seconds", "2", "--json", stdin=subprocess.PIPE)
        yield Technician(running, adapter)
        running.close()


def test_a_technician_is_led_through_the_positions(technician, folder):
    technician.goes("0.3", -60)
    technician.leaves_out("0.3")
    technician.goes("1", -70)
    technician.leaves_out("1")
    # The wrong side, then deaf, and then right.
    technician.goes("3", -80, right=-60)
    technician.is_asked("the right step is stronger by 20 dB: is this its side?\n").is_asked("repeat it").answers("")
    technician.adapter.levels = {}
    technician.is_asked("3 m in front").answers("")
    technician.is_asked("its beacon was not heard\n").is_asked("repeat it? (n or s: leave it out, q: quit) [Y/n]").answers("y")
    technician.goes("3", -80)
    technician.leaves_out("3")
    technician.is_asked("write left -70 dBm into ").answers("y")
    ended = technician.running.ends()
    assert ended.status == 0, ended
    *positions, result = ended.objects
    assert [(p["number"], p["distance_m"], p["carry"], p["used"]) for p in positions] == [
        (1, 0.3, "hand", True),
        (3, 1, "hand", True),
        (5, 3, "hand", False),
        (5, 3, "hand", False),
        (5, 3, "hand", True),
    ]
    assert result["written"] is True
    assert len(result["steps"][0]["positions"]) == 3
    assert not (folder / "van.toml.calibration").exists()
    assert "  measured_power = -70\n" in (folder / "van.toml").read_text()


def test_s_leaves_a_bad_position_out_and_q_ends_it_there(technician, folder):
    technician.adapter.levels = {}
    technician.is_asked("1 of 6: ").answers("")
    technician.is_asked("its beacon was not heard\n").is_asked("repeat it? (n or s: leave it out").answers("s")
    # Another step that is silent does no harm: the position may stay.
    technician.is_asked("2 of 6: ")
    technician.adapter.levels = {1: -60}
    technician.answers("")
    technician.is_asked("repeat it? (n: keep it, s: leave it out, q: quit) [y/N]").answers("s")
    technician.is_asked("3 of 6: ").answers("")
    technician.is_asked("repeat it? ").answers("q")
    ended = technician.running.ends()
    assert ended.status == 1
    assert ended.objects[-1]["code"] == "failure"
    assert "2 of 6 positions are kept in " in ended.stderr
    assert (folder / "van.toml").read_text() == OWNERS_FILE


def test_an_interruption_leaves_the_file_untouched(technician, folder):
    technician.goes("0.3", -60)
    technician.is_asked("0.3 m in front of the left step, in a pocket")
    technician.running.signal(signal.SIGINT)
    assert technician.running.ends().status == -signal.SIGINT
    assert (folder / "van.toml").read_text() == OWNERS_FILE


def test_it_can_be_interrupted_while_it_listens(technician, folder):
    technician.goes("0.3", -60)
    wait_until(lambda: technician.adapter.scans, "a scan")
    technician.running.signal(signal.SIGTERM)
    assert technician.running.ends().status == -signal.SIGTERM
    assert (folder / "van.toml").read_text() == OWNERS_FILE


def test_a_radio_that_is_lost_can_be_tried_again(stepctl, folder):
    (folder / "socket").touch()
    arguments = ["calibrate", "--vehicle", folder / "van.toml", "--radio", f"h4:unix:{folder}/none", "--step", "left"]
    running = stepctl.start(folder / "log", *arguments, stdin=subprocess.PIPE)
    technician = Technician(running, None)
    technician.is_asked("0.3 m in front").answers("")
    technician.is_asked("cannot connect to h4:unix:").is_asked("try again? (s: leave it out, q: quit) [Y/n]").answers("")
    technician.is_asked("0.3 m in front").answers("")
    technician.is_asked("try again? (s: leave it out, q: quit) [Y/n]").answers("n")
    ended = running.ends()
    assert ended.status == 69
    assert (folder / "van.toml").read_text() == OWNERS_FILE


def test_where_nobody_may_be_asked_it_ends_at_the_first_question(calibrate, folder):
    ended = calibrate("--no-input", "--radio", "hci0", "--yes")
    assert ended.status == 64
    assert ended.error.startswith("--no-input forbids this question: 1 of 6: 0.3 m in front of the left step")
    assert (folder / "van.toml").read_text() == OWNERS_FILE


# --- What is kept ---


@pytest.fixture
def starts(stepctl, folder):
    """Starts another run by another technician, with the same adapter."""
    runs = []
    with Adapter(folder / "socket", VEHICLE, {}, spread=2) as adapter:

        def start(*arguments, seconds=2, step="left"):
            common = ["calibrate", "--vehicle", folder / "van.toml", "--radio", adapter.radio, "--step", step]
            log = folder / f"log-{len(runs)}"
            runs.append(stepctl.start(log, *common, "--seconds", seconds, *arguments, stdin=subprocess.PIPE))
            return Technician(runs[-1], adapter, step)

        yield start
        for running in runs:
            running.close()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL], ids=["Control-C", "power"])
def test_what_was_measured_before_an_interruption_is_not_measured_again(starts, folder, end):
    technician = starts()
    technician.is_asked("Calibrates Van: left.\nThere are 6 positions in front of each step.")
    technician.is_asked("1 of 6: ").goes("0.3", -60)
    technician.is_asked("2 of 6: ").leaves_out("0.3")
    technician.is_asked("3 of 6: ").goes("1", -70)
    technician.is_asked("4 of 6: ")
    technician.running.signal(end)
    assert technician.running.ends().status == -end
    kept = folder / "van.toml.calibration"
    if end == signal.SIGINT:
        assert f"3 of 6 positions are kept in {kept}" in technician.running.stderr.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in folder.glob("van*")) == ["van.toml", "van.toml.calibration"]

    technician = starts("--yes")
    technician.is_asked("3 of 6 positions are kept, the last from ")
    technician.is_asked("4 of 6: ").leaves_out("1")
    technician.is_asked("5 of 6: ").goes("3", -80)
    technician.is_asked("6 of 6: ").leaves_out("3")
    ended = technician.running.ends()
    assert ended.status == 0, ended
    assert ended.lines[-1].startswith("left: correct zone ")
    assert "  measured_power = -70\n" in (folder / "van.toml").read_text()
    assert not kept.exists()


def test_who_measures_one_step_again_keeps_what_was_measured_of_another(starts):
    technician = starts()
    technician.goes("0.3", -60)
    technician.is_asked("2 of 6: ").answers("q")
    assert technician.running.ends().status == 1
    technician = starts("--again", step="right")
    technician.goes("0.3", -85, -60)
    technician.is_asked("2 of 6: ").answers("q")
    assert technician.running.ends().status == 1
    technician = starts("--yes")
    technician.is_asked("1 of 6 positions are kept, ").is_asked("2 of 6: ").answers("q")
    assert technician.running.ends().status == 1


def test_it_listens_until_enough_was_heard_and_says_when_that_is_too_little(starts):
    technician = starts("--again", seconds=60)
    technician.goes("0.3", -60)
    technician.is_asked("2 of 6: ").answers("q")
    ended = technician.running.ends()
    assert ended.status == 1
    packets = int(re.search(r"(\d+) packets, -", ended.stderr)[1])
    assert 60 <= packets < 50 * 30, "far from a minute"
    technician.adapter.rate = 3
    technician = starts("--again", seconds=4)
    technician.goes("0.3", -60)
    technician.is_asked("  only ").is_asked(" packets in 2 s: is the beacon on, and is this its step?\n")
    technician.is_asked("packets were heard, of at least 30\n").is_asked("repeat it? (n or s: leave it out, q: quit)").answers("n")
    technician.is_asked("2 of 6: ")
    technician.running.signal(signal.SIGTERM)
    assert technician.running.ends().status == -signal.SIGTERM


def test_a_folder_in_its_place_is_told_and_nothing_is_measured(starts, folder):
    (folder / "van.toml.calibration").mkdir()
    technician = starts("--again")
    technician.is_asked("cannot remove ")
    assert technician.running.ends().status == 74


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_what_root_keeps_is_the_owners(starts, folder):
    os.chown(folder / "van.toml", 1234, 4321)
    technician = starts()
    technician.goes("0.3", -60)
    technician.is_asked("2 of 6: ").answers("q")
    assert technician.running.ends().status == 1
    status = (folder / "van.toml.calibration").stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (1234, 4321, 0o600)


@pytest.fixture
def terminal(stepctl, folder):
    with Adapter(folder / "socket", VEHICLE, {1: -60, 2: -85}, spread=2) as adapter:
        arguments = ["calibrate", "--vehicle", folder / "van.toml", "--radio", adapter.radio, "--step", "left"]
        terminal = Terminal([STEPCTL, *arguments], stepctl.environment)
        yield terminal
        terminal.close()


def test_on_a_terminal_one_key_answers_and_q_quits_at_any_moment(terminal, folder):
    terminal.waits_for(b"1 of 6: 0.3 m in front of the left step, in hand: press Enter")
    terminal.types(b"xyz")  # none of these is an answer
    terminal.types(b"\r")
    terminal.waits_for(b" packets, ")
    terminal.types(b"q")
    assert terminal.ends() == 1
    assert b"error" not in terminal.read()
    assert terminal.shows_what_is_typed
    assert (folder / "van.toml").read_text() == OWNERS_FILE
    assert not (folder / "van.toml.calibration").exists()


def test_on_a_terminal_s_leaves_a_position_out_while_it_listens_too(terminal, folder):
    terminal.waits_for(b"1 of 6: ")
    terminal.types(b"\r")
    terminal.waits_for(b" packets, ")
    terminal.types(b"s")
    terminal.waits_for(b"2 of 6: ")
    terminal.types(b"q")
    assert terminal.ends() == 1
    assert b"1 of 6 positions are kept in " in terminal.read()
    assert terminal.shows_what_is_typed


def test_on_a_terminal_s_leaves_a_position_out_and_control_c_ends_it(terminal, folder):
    terminal.waits_for(b"1 of 6: ")
    terminal.types(b"S")
    terminal.waits_for(b"2 of 6: ")
    terminal.types(b"\x03")
    assert terminal.ends() == -signal.SIGINT
    assert b"1 of 6 positions are kept in " in terminal.read()
    assert terminal.shows_what_is_typed
