"""Codes that come before a camera. There is none on a machine that tests: camera.c answers for the kernel, in its place.

So stepctl's part is shown, by the rules that the kernel's documentation has; whether a camera keeps them is not.
"""

import re
import signal
import subprocess
from contextlib import closing
from pathlib import Path

import numpy
import pytest
from PIL import Image

import pictures
from captures import VEHICLE_FILE
from labels import OTHER, label
from programs import PATIENCE, STEPCTL, children, wait_until
from terminal import Terminal

WIDTH, HEIGHT = 640, 480
HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def library(preloaded) -> Path:
    return preloaded("camera")


def frame(*codes: str) -> numpy.ndarray:
    picture = Image.new("L", (WIDTH, HEIGHT), 140)
    for index, code in enumerate(codes):
        picture.paste(pictures.code(code, scale=5), (30 + 300 * index, 80))
    return numpy.asarray(picture)


EMPTY = frame()


def padded(rows: numpy.ndarray, line: int) -> bytes:
    return numpy.pad(rows, ((0, 0), (0, line - rows.shape[1])), constant_values=7).tobytes()


def interleaved(gray: numpy.ndarray, first: int) -> numpy.ndarray:
    """Brightness in every second byte, color in the others."""
    rows = numpy.full((HEIGHT, 2 * WIDTH), 128, dtype="uint8")
    rows[:, first::2] = gray
    return rows


def in_format(code: str, gray: numpy.ndarray) -> tuple[bytes, int]:
    """A picture as the camera has it, and the length of a line."""
    match code:
        case "GREY":
            return padded(gray, 704), 704
        case "YUYV":
            return padded(interleaved(gray, 0), 2 * WIDTH), 2 * WIDTH
        case "UYVY":
            return padded(interleaved(gray, 1), 1536), 1536
        case "NV12" | "YU12":
            return padded(gray, WIDTH) + bytes([128]) * (WIDTH * HEIGHT // 2), WIDTH
        case "MJPG":
            return pictures.jpeg(Image.fromarray(gray), 80).ljust(300_000, b"\0"), 0
    raise AssertionError(code)


@pytest.fixture
def camera(library, tmp_path):
    """Variables by which stepctl finds a camera that shows these pictures, as /dev/video would be."""
    (tmp_path / "car.toml").write_text(VEHICLE_FILE)

    def shows(*frames: numpy.ndarray, form: str = "YUYV", **more: str) -> dict[str, str]:
        encoded = [in_format(form, each) for each in frames]
        (tmp_path / "video").write_bytes(b"".join(content for content, _ in encoded))
        return {
            "LD_PRELOAD": str(library),
            "CAMERA": str(tmp_path / "video"),
            "CAMERA_SIZE": f"{WIDTH}x{HEIGHT}",
            "CAMERA_FORMAT": form,
            "CAMERA_LINE": str(encoded[0][1]),
            "CAMERA_BYTES": str(len(encoded[0][0])),
        } | more

    return shows


@pytest.fixture
def look(stepctl, tmp_path):
    arguments = ["locate", "--by", "qr", "--qr", tmp_path / "video", "--vehicle", tmp_path / "car.toml"]
    return lambda variables, *more: stepctl(*arguments, *more, **variables)


@pytest.mark.parametrize("form", ["GREY", "YUYV", "UYVY", "NV12", "YU12", "MJPG"])
def test_a_code_that_comes_into_view_is_read(camera, look, form):
    ended = look(camera(*[EMPTY] * 5, frame(label("right")), form=form), "--json")
    assert ended.status == 0, ended
    assert (ended.json["step"], ended.json["method"]) == ("right", "qr")


def test_codes_of_something_else_are_passed_over(camera, look):
    strangers = frame("https://example.org/", label(uuid=OTHER))
    ended = look(camera(strangers, EMPTY, strangers, frame(label())), "--json")
    assert (ended.status, ended.json["step"]) == (0, "left")


def test_what_was_seen_instead_is_told_when_the_time_is_up(camera, look):
    nothing = look(camera(EMPTY), "--timeout", "0.7")
    assert (nothing.status, nothing.stdout) == (3, "")
    assert nothing.error == "not located: the camera saw no code in 0.7 s"
    other = look(camera(frame(label(uuid=OTHER))), "--timeout", "10")
    assert other.status == 3
    assert other.error == f"not located: the code is another vehicle's ({OTHER}), not one of Rolling Chassis"


@pytest.mark.parametrize(
    ("variables", "error"),
    [
        ({"CAMERA_IS_OUTPUT": "1"}, "not a camera that can be used"),
        ({"CAMERA_FORMAT": "H265"}, "not a camera that can be used"),
        ({"CAMERA_IS_BUSY": "1"}, "the camera gives no pictures; is another program using it?"),
        ({"CAMERA_IS_UNPLUGGED": "1"}, "the camera gives no pictures; is another program using it?"),
    ],
    ids=["output", "another format", "busy", "unplugged"],
)
def test_a_camera_that_cannot_be_used_is_told(camera, look, tmp_path, variables, error):
    ended = look(camera(EMPTY, **variables))
    assert (ended.status, ended.stdout) == (69, "")
    assert ended.error == f"{tmp_path}/video: {error}"


def test_lines_that_are_shorter_than_the_picture_are_not_believed(camera, look):
    ended = look(camera(frame(label()), CAMERA_LINE=str(WIDTH)), "--timeout", "0.7")
    assert (ended.status, ended.error) == (3, "not located: the camera saw no code in 0.7 s")


def test_a_camera_that_says_nothing_is_given_up_in_time(camera, look):
    ended = look(camera(EMPTY, CAMERA_IS_STUCK="1"), "--timeout", "0.7")
    assert ended.status == 3


def test_control_c_ends_a_look_at_once(camera, stepctl, tmp_path):
    arguments = [STEPCTL, "locate", "--by", "qr", "--qr", tmp_path / "video", "--vehicle", tmp_path / "car.toml"]
    arguments += ["--timeout", "180"]
    environment = stepctl.environment | camera(EMPTY)
    with subprocess.Popen(list(map(str, arguments)), env=environment, stderr=subprocess.PIPE) as process:
        child = wait_until(lambda: children(process), "a child")[0]
        wait_until(lambda: "Seccomp:\t2" in Path(f"/proc/{child}/status").read_text(), "it looks")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == -signal.SIGINT, "in a third of the time that it has"
        assert process.stderr.read() == b""
    wait_until(lambda: not Path(f"/proc/{child}").exists(), "the camera is free again")


def test_a_look_shows_how_much_time_is_left(camera, stepctl, tmp_path):
    locate = ["locate", "--by", "qr", "--vehicle", tmp_path / "car.toml"]
    for command, code in ((locate, b"the code on the step"), (["config", "import"], b"the vehicle's code")):
        arguments = [STEPCTL, *command, "--qr", tmp_path / "video", "--timeout", "3600"]
        with closing(Terminal(arguments, stepctl.environment | camera(EMPTY))) as terminal:
            shown = re.compile(rb"\rshow " + code + rb" to the camera, (\d+) s left\x1b\[K")
            wait_until(lambda: len(set(shown.findall(terminal.read()))) > 1, "it shows how time goes on")
            terminal.process.send_signal(signal.SIGINT)
            assert terminal.ends() == -signal.SIGINT
            assert terminal.written.endswith(b"\r\x1b[K")


def test_a_vehicles_code_is_imported_by_camera(camera, stepctl, tmp_path):
    car = tmp_path / "car"
    assert stepctl("provision", "vehicle", car, "--name", "Van").status == 0
    content = stepctl("provision", "qr", "--vehicle", car, "--json").json["codes"][0]["content"]
    code = pictures.code(content, "L", scale=3)
    picture = Image.new("L", (WIDTH, HEIGHT), 255)
    picture.paste(code, (100, 20))
    variables = camera(EMPTY, frame(label()), numpy.asarray(picture)) | {"HOME": str(tmp_path)}
    ended = stepctl("config", "import", "--qr", tmp_path / "video", "--yes", "--json", **variables)
    assert ended.status == 0, ended
    assert ended.json["vehicle_file"] == f"{tmp_path}/.config/stepctl/vehicles/van/vehicle.toml"
