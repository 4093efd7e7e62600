"""QR codes: those that are made are read by programs of others, and those that cameras see are read by stepctl."""

import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import tempfile
import zlib
from contextlib import closing
from pathlib import Path

import numpy
import pytest
import zxingcpp
from PIL import Image, ImageDraw, ImageOps

import pictures
from captures import VEHICLE, VEHICLE_FILE
from labels import OTHER, former_label, label
from programs import AS_ANYBODY, BINARIES, STEPCTL, children, wait_until
from terminal import Terminal

MODULES = {"L": 29, "M": 33, "Q": 37, "H": 41}
QUIET = 4


def zxing(picture: Image.Image) -> list[str]:
    return sorted(code.text for code in zxingcpp.read_barcodes(picture, zxingcpp.BarcodeFormat.QRCode))


def zbar(file: Path) -> list[str]:
    """Without the session's bus, about which it complains."""
    ended = subprocess.run(["zbarimg", "-q", "--raw", "--nodbus", file], capture_output=True, text=True)
    return sorted(ended.stdout.splitlines())


@pytest.fixture
def car(tmp_path) -> Path:
    (tmp_path / "car.toml").write_text(VEHICLE_FILE)
    return tmp_path / "car.toml"


@pytest.fixture
def make(stepctl, car):
    """provision qr; with a path in the end of a name, what it wrote."""

    def run(*arguments, **more):
        return stepctl("provision", "qr", "--vehicle", car, *arguments, **more)

    return run


@pytest.fixture
def made(make, tmp_path):
    def run(name: str, *arguments) -> Path:
        ended = make("--output", tmp_path / name, *arguments)
        assert (ended.status, ended.stdout, ended.stderr) == (0, f"wrote {tmp_path / name}\n", "")
        return tmp_path / name

    return run


@pytest.fixture
def read(stepctl, car, tmp_path):
    """locate with a picture: what was found."""

    def run(picture: Image.Image | bytes | Path | str, *arguments, **more):
        source = picture
        if isinstance(picture, Image.Image):
            picture = pictures.png(picture)
        if isinstance(picture, bytes):
            source = tmp_path / "picture"
            source.write_bytes(picture)
        return stepctl("locate", "--by", "qr", "--qr", source, "--vehicle", car, *arguments, **more)

    return run


@pytest.fixture
def finds(read):
    """The step that a picture is of."""

    def run(picture, **more) -> str:
        ended = read(picture, "--json", **more)
        assert ended.status == 0, ended
        found = ended.json
        assert (found["method"], found["vehicle"], found["located"]) == ("qr", VEHICLE, True)
        return found["step"]

    return run


@pytest.fixture
def refuses(read):
    """The one line that says why a picture names no step, and the status."""

    def run(picture, *arguments, **more) -> tuple[int, str]:
        ended = read(picture, *arguments, **more)
        assert ended.stdout == ""
        assert all(line.startswith(("stepctl: error: ", "hint: ")) for line in ended.stderr.splitlines())
        return ended.status, ended.error

    return run


# --- Codes that are made ---


@pytest.mark.arm64
@pytest.mark.parametrize("level", "LMQH")
def test_a_picture_is_read_by_others(made, level):
    file = made("left.png", "--step", "left", "--level", level)
    picture = Image.open(file)
    assert (picture.mode, picture.size) == ("1", (picture.width, picture.width))
    assert picture.width % (MODULES[level] + 2 * QUIET) == 0
    assert zxing(picture) == [label()]
    assert zbar(file) == [label()]


@pytest.mark.parametrize("level", "LMQH")
def test_the_modules_are_those_of_qrencode(made, level):
    picture = Image.open(made("left.png", "--step", "left", "--level", level.lower()))
    side = MODULES[level] + 2 * QUIET
    ours = numpy.asarray(picture.resize((side, side), Image.Resampling.NEAREST).convert("L"))
    assert (ours == numpy.asarray(pictures.code(label(), level, scale=1))).all()


@pytest.mark.parametrize("size", [10, 25.4, 60])
def test_a_picture_is_printed_as_large_as_was_asked_for(made, size):
    picture = Image.open(made("left.png", "--step", "left", "--size", size))
    dots, _ = picture.info["dpi"]
    assert picture.width / dots * 25.4 == pytest.approx(size * (33 + 2 * QUIET) / 33, rel=0.001)


def test_a_drawing_is_read_by_others(made):
    text = made("left.svg", "--step", "left", "--size", "33").read_text()
    assert 'width="41mm" height="41mm" viewBox="-4 -4 41 41"' in text
    picture = Image.new("L", (41, 41), 255)
    draw = ImageDraw.Draw(picture)
    (path,) = re.findall(r'<path d="([^"]+)"', text)
    for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\3z", path):
        draw.rectangle([int(x) + 4, int(y) + 4, int(x) + 3 + int(width), int(y) + 4], fill=0)
    assert re.sub(r"M(\d+) (\d+)h(\d+)v1h-\3z", "", path) == "", "nothing else is drawn"
    assert zxing(picture.resize((360, 360), Image.Resampling.NEAREST)) == [label()]


def drawn(lines: list[str], dark: str) -> Image.Image:
    """What half blocks look like; `dark` says whether ink or paper is dark."""
    halves = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}
    rows = numpy.array([[halves[block][half] for block in line] for line in lines for half in (0, 1)])
    if dark == "paper":
        rows = 1 - rows
        rows[-1] = 0  # the half row below the code
    picture = Image.fromarray(((1 - rows) * 255).astype("uint8"))
    return picture.resize((picture.width * 8, picture.height * 8), Image.Resampling.NEAREST)


def test_text_without_colors_is_read_by_others(make):
    ended = make("--step", "right")
    assert (ended.status, ended.stderr) == (0, "")
    assert "\x1b" not in ended.stdout and {len(line) for line in ended.lines} == {41}
    assert zxing(drawn(ended.lines, dark="paper")) == [label("right")]


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["colors", "NO_COLOR", "dumb"])
def test_a_terminal_shows_a_code_that_is_read_by_others(stepctl, car, variables):
    command = [STEPCTL, "provision", "qr", "--step", "left", "--vehicle", car]
    with closing(Terminal(command, stepctl.environment | {"TERM": "xterm-256color"} | variables)) as terminal:
        assert terminal.ends() == 0
        lines = terminal.written.decode().replace("\r", "").splitlines()
    if variables:
        assert "\x1b" not in "".join(lines)
        assert zxing(drawn(lines, dark="paper")) == [label()]
    else:
        # Black on white, whatever the theme.
        assert all(line.startswith("\x1b[38;5;16;48;5;231m") and line.endswith("\x1b[0m") for line in lines)
        assert zxing(drawn([re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines], dark="ink")) == [label()]


def test_a_terminal_that_is_too_narrow_gets_no_broken_code(stepctl, car):
    command = [STEPCTL, "provision", "qr", "--step", "left", "--vehicle", car]
    with closing(Terminal(command, stepctl.environment, columns=40)) as terminal:
        assert terminal.ends() == 64
        assert b"error: the code needs 41 columns, and the terminal has 40\r\n" in terminal.written
        assert "█" not in terminal.written.decode()


@pytest.mark.parametrize("format", ["png", "pdf"])
def test_a_terminal_gets_no_bytes(stepctl, car, format):
    command = [STEPCTL, "provision", "qr", "--step", "left", "--format", format, "--vehicle", car]
    with closing(Terminal(command, stepctl.environment)) as terminal:
        assert terminal.ends() == 64
        assert f"error: cannot print {format} on a terminal\r\n".encode() in terminal.written


# --- Sheets of labels ---


def pages(file: Path, folder: Path, dpi: int = 300) -> list[Image.Image]:
    subprocess.run(["pdftoppm", "-r", str(dpi), "-gray", "-png", file, folder / "page"], check=True)
    return [Image.open(page).convert("L") for page in sorted(folder.glob("page-*.png"))]


def text_of(file: Path) -> str:
    return subprocess.run(["pdftotext", "-layout", file, "-"], capture_output=True, text=True, check=True).stdout


@pytest.mark.arm64
@pytest.mark.parametrize(("paper", "size"), [("a4", (210, 297)), ("letter", (215.9, 279.4))])
def test_a_sheet_has_every_step_in_true_size(made, tmp_path, paper, size):
    file = made("sheet.pdf", "--sheet", "--size", "37", "--paper", paper)
    information = subprocess.run(["pdfinfo", file], capture_output=True, text=True, check=True)
    assert information.stderr == ""
    points = re.search(r"Page size: +([\d.]+) x ([\d.]+) pts", information.stdout).groups()
    assert [float(point) / 72 * 25.4 for point in points] == pytest.approx(size, abs=0.01)
    assert "Pages:           1\n" in information.stdout

    (page,) = pages(file, tmp_path)
    codes = zxingcpp.read_barcodes(page, zxingcpp.BarcodeFormat.QRCode)
    assert sorted(code.text for code in codes) == [label("left"), label("right")]
    assert zbar(tmp_path / "page-1.png") == [label("left"), label("right")]
    for code in codes:
        width = numpy.hypot(*(numpy.array(corner(code, "top_right")) - corner(code, "top_left")))
        assert width / 300 * 25.4 == pytest.approx(37, abs=0.2)
    assert re.findall(r"Rolling Chassis", text_of(file)) == ["Rolling Chassis"] * 2
    assert re.findall(r"LEFT|RIGHT", text_of(file)) == ["LEFT", "RIGHT"]
    assert re.findall(r"scan to open: stepctl open --by qr", text_of(file)) == ["scan to open: stepctl open --by qr"] * 2


@pytest.mark.parametrize(("paper", "size"), [("a4", (210, 297)), ("letter", (215.9, 279.4))])
def test_a_sheet_without_a_size_uses_the_page(made, car, tmp_path, paper, size):
    car.write_text(VEHICLE_FILE.replace('id = "right"', 'id = "rear-right"'))
    file = made("sheet.pdf", "--sheet", "--paper", paper)
    found = pages(file, tmp_path, dpi=100)
    assert [zxing(page) for page in found] == [[label("left")], [label("rear-right")]]
    assert [zbar(page) for page in sorted(tmp_path.glob("page-*.png"))] == [[label("left")], [label("rear-right")]]
    for page, word in zip(found, ("LEFT", "RIGHT")):
        (code,) = zxingcpp.read_barcodes(page, zxingcpp.BarcodeFormat.QRCode)
        width = numpy.hypot(*(numpy.array(corner(code, "top_right")) - corner(code, "top_left")))
        assert width / 100 * 25.4 > 0.6 * size[0]
        # The word above all else: its letters are about 30 mm high.
        dark = numpy.asarray(page)[: corner(code, "top_left")[1] - 20] < 128
        rows = numpy.flatnonzero(dark[:, 100:-100].any(axis=1))
        first = numpy.split(rows, numpy.flatnonzero(numpy.diff(rows) > 2) + 1)[0]
        assert len(first) / 100 * 25.4 > 25, word
        assert not any(edge.any() for edge in (dark[:24], dark[:, :24], dark[:, -24:]))
    text = text_of(file)
    assert re.findall(r"LEFT|RIGHT", text) == ["LEFT", "RIGHT"]
    assert re.findall(r"Rolling Chassis.*", text) == ["Rolling Chassis", "Rolling Chassis, rear-right"]


def corner(code, name: str) -> tuple[int, int]:
    point = getattr(code.position, name)
    return point.x, point.y


def test_the_dark_square_has_just_the_size_that_was_asked_for(made, tmp_path):
    (page,) = pages(made("one.pdf", "--step", "left", "--size", "50"), tmp_path, dpi=508)
    (code,) = zxingcpp.read_barcodes(page, zxingcpp.BarcodeFormat.QRCode)
    x, y = corner(code, "top_left")
    dark = numpy.asarray(page) < 128
    # The upper edge of the upper finder patterns, and the left one of those at the left: 20 dots are a millimetre.
    across = numpy.flatnonzero(dark[corner(code, "top_left")[1] + 5])
    down = numpy.flatnonzero(dark[:, corner(code, "top_left")[0] + 5])
    down = down[down < corner(code, "bottom_left")[1] + 100]
    assert across[-1] - across[0] == pytest.approx(50 * 20, abs=2)
    assert down[-1] - down[down > corner(code, "top_left")[1] - 10][0] == pytest.approx(50 * 20, abs=2)


def test_copies_fill_as_many_pages_as_it_takes(made, tmp_path):
    file = made("copies.pdf", "--sheet", "--copies", "7", "--size", "40", "--level", "H")
    found = [zxing(page) for page in pages(file, tmp_path, dpi=200)]
    assert [len(codes) for codes in found] == [9, 5]
    assert sorted(sum(found, [])) == [label("left")] * 7 + [label("right")] * 7


def test_labels_do_not_touch_and_can_be_cut(made, tmp_path):
    """Between the labels runs a strip in which there is nothing but cut marks."""
    (page,) = pages(made("cut.pdf", "--sheet", "--copies", "3", "--size", "40"), tmp_path, dpi=254)
    dark = numpy.asarray(page) < 128
    left = 120  # 12 mm at 10 dots a millimetre
    width = round(40 * 10 * 41 / 33)
    strip = dark[60:1500, left + width + 1 : left + width + 79]
    marks = numpy.flatnonzero(strip.any(axis=1))
    assert len(marks) > 0, "cut marks"
    groups = numpy.split(marks, numpy.flatnonzero(numpy.diff(marks) > 2) + 1)
    # Lines of 0.1 mm across, and their ends where they go down along the edge.
    assert all(len(group) <= 32 for group in groups)
    assert strip.mean() < 0.01
    # Nothing is where printers do not print, and what says 100 mm, 8 mm above the page's end, is that long.
    assert not any(edge.any() for edge in (dark[:60], dark[-60:], dark[:, :60], dark[:, -60:]))
    ruler = numpy.flatnonzero(dark[-81, :1125])
    assert (ruler[0], ruler[-1]) == (pytest.approx(120, abs=2), pytest.approx(1120, abs=2)) and len(ruler) > 990


def test_a_name_that_the_font_lacks_is_told_and_not_changed(make, car, tmp_path):
    car.write_text(VEHICLE_FILE.replace("Rolling Chassis", "漢字 Bus"))
    ended = make("--sheet", "--output", tmp_path / "sheet.pdf")
    assert ended.status == 0
    assert ended.stderr == (
        "the font lacks letters of the name 漢字 Bus; the labels have the UUID instead\n"
    )
    assert text_of(tmp_path / "sheet.pdf").count(VEHICLE) == 2
    car.write_text(VEHICLE_FILE.replace("Rolling Chassis", "Wägelchen Nº 5 (für Zoë)"))
    assert make("--sheet", "--output", tmp_path / "sheet.pdf").stderr == ""
    assert text_of(tmp_path / "sheet.pdf").count("Wägelchen Nº 5 (für Zoë)") == 2


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--step", "rear"], "Rolling Chassis has no step rear: it has left, right"),
        (["--sheet", "--size", "300"], r"a label with a code of 300 mm does not fit on the page; \d+ mm would"),
        (["--step", "left", "--level", "X"], 'the value "X" is invalid for "--level <level>".*'),
        (["--step", "left", "--sheet"], "--step and --sheet exclude each other"),
        (["--sheet", "--format", "png"], "--sheet is for --format pdf"),
        (["--step", "left", "--copies", "2"], "--copies is for --format pdf"),
        (["--step", "left", "--size", "5"], "--size takes 10 to 500 mm"),
        (["--step", "left", "--size", "nan"], "--size takes 10 to 500 mm"),
        (["--sheet", "--copies", "0"], "--copies takes 1 to 1000"),
    ],
)
def test_what_cannot_be_made_is_told(make, tmp_path, arguments, error):
    ended = make(*arguments, "--output", tmp_path / "out")
    assert (ended.status, ended.stdout) == (64, "")
    line = next(line for line in ended.stderr.splitlines() if "error: " in line)
    assert re.fullmatch(error, line.partition("error: ")[2])
    assert not (tmp_path / "out").exists()


def test_a_rider_who_would_sign_for_the_vehicle_is_told_what_else_there_is(stepctl, file_vehicle):
    rider = file_vehicle.rider("quentin")
    ended = rider.types("provision", "qr")
    assert ended.status == 66 and ended.error == (
        f"{rider.folder} is not an operator's folder: {rider.folder}/operator/token.jwk is missing"
    )
    assert ended.stderr.splitlines()[-1].startswith("hint: ") and "--step" in ended.stderr


@pytest.mark.parametrize("arguments", [["--step", "left"], ["--sheet"]])
@pytest.mark.parametrize("name", ["code.jpg", "a.png/code.eps", "code.png.bak"])
def test_an_ending_that_stands_for_no_picture_is_refused(make, tmp_path, name, arguments):
    (tmp_path / "a.png").mkdir()
    ended = make(*arguments, "--output", tmp_path / name)
    assert (ended.status, ended.stdout, (tmp_path / name).exists()) == (64, "", False)
    assert "--output takes a name that ends in .png, .svg, .pdf or .txt; for another name, add --format\n" in ended.stderr
    assert make(*arguments, "--output", tmp_path / name, "--format", "pdf").status == 0
    assert (tmp_path / name).read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("name", "begins"),
    [("LEFT.PNG", b"\x89PNG"), ("left.Pdf", b"%PDF"), ("left.svg", b"<svg"), ("v1.2/left", "█".encode()),
     ("left.txt", "█".encode()), (".left", "█".encode())],
)  # fmt: skip
def test_the_ending_of_a_name_is_read_in_any_case(make, tmp_path, name, begins):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    assert make("--step", "left", "--output", tmp_path / name).status == 0
    assert (tmp_path / name).read_bytes().startswith(begins)


@pytest.mark.parametrize("path", ["", ".", ".."])
def test_an_output_without_a_name_is_an_error(make, tmp_path, path):
    before = sorted(tmp_path.iterdir())
    ended = make("--step", "left", "--output", path, folder=tmp_path)
    assert ended.status in (66, 74) and ended.error.startswith("cannot ")
    assert sorted(tmp_path.iterdir()) == before


def test_the_short_form_of_output_is_known_and_a_dash_is_standard_output(make, tmp_path):
    assert make("--step", "left", "-o", tmp_path / "left.png").stdout == f"wrote {tmp_path}/left.png\n"
    assert zxing(Image.open(tmp_path / "left.png")) == [label()]
    for given in (["-o", "-"], ["--output=-"]):
        assert make("--step", "left", *given, folder=tmp_path).stdout == make("--step", "left").stdout
    assert make("--step", "left", "-o", "-", "--format", "svg").stdout.startswith("<svg ")
    assert not (tmp_path / "-").exists()
    assert make("--step", "left", "-o", "-", "--json").json["file"] is None


def test_a_program_gets_what_is_in_the_codes(make, tmp_path):
    assert make("--step", "left", "--json").json == {
        "codes": [{"step": "left", "content": label(), "modules": 33}],
        "file": None,
    }
    written = make("--sheet", "--json", "--level", "Q", "--output", tmp_path / "sheet.pdf").json
    assert [code["content"] for code in written["codes"]] == [label("left"), label("right")]
    assert written["file"] == str(tmp_path / "sheet.pdf") and (tmp_path / "sheet.pdf").exists()


def test_what_is_no_file_is_written_into_and_stays(make, tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with subprocess.Popen(["cat", tmp_path / "pipe.png"], stdout=subprocess.PIPE) as reader:
        assert make("--step", "left", "--output", tmp_path / "pipe.png").status == 0
        (tmp_path / "copy.png").write_bytes(reader.stdout.read())
    assert (tmp_path / "pipe.png").is_fifo()
    assert zbar(tmp_path / "copy.png") == [label()]
    full = make("--step", "left", "--output", "/dev/full")
    assert (full.status, full.error) == (74, "cannot write /dev/full: No space left on device")
    assert Path("/dev/full").is_char_device()


# --- Pictures that are read ---

EASY = pictures.code(label())


@pytest.mark.parametrize("degrees", range(0, 360, 23))
def test_a_code_that_is_turned(finds, degrees):
    assert finds(pictures.rotated(EASY, degrees)) == "left"


@pytest.mark.parametrize("radius", [1, 2, 3])
def test_a_code_that_is_blurred(finds, radius):
    assert finds(pictures.blurred(EASY, radius)) == "left"


@pytest.mark.parametrize("width", [65, 80, 100])
def test_a_code_that_is_small(finds, width):
    assert finds(pictures.smaller(EASY, width)) == "left"


@pytest.mark.arm64
def test_a_code_that_was_photographed(finds):
    for seed in range(8):
        photograph = pictures.photographed(EASY, seed, tilt=0.15, blur=1.5)
        assert finds(pictures.jpeg(photograph)) == "left", seed


def test_a_sheet_that_was_photographed_shows_two_steps(refuses):
    sheet = pictures.side_by_side(EASY, pictures.code(label("right")))
    assert refuses(sheet)[0] == 3
    assert "left" in refuses(sheet)[1] and "right" in refuses(sheet)[1]


def test_of_several_codes_the_one_of_a_step_counts(finds):
    others = [pictures.code("https://example.org/"), EASY, pictures.code(label("left", OTHER)), EASY]
    assert finds(pictures.side_by_side(*others)) == "left"


@pytest.mark.arm64
@pytest.mark.parametrize(
    "encode",
    [
        lambda picture: pictures.png(picture.convert("1")),
        lambda picture: pictures.png(picture.convert("P")),
        lambda picture: pictures.png(picture.convert("RGB")),
        lambda picture: pictures.png(picture.convert("RGBA")),
        lambda picture: pictures.png(picture.convert("I;16")),
        lambda picture: pictures.encoded(transparent(picture), "PNG"),
        lambda picture: pictures.jpeg(picture, 30),
        lambda picture: pictures.encoded(picture.convert("RGB"), "JPEG", progressive=True),
    ],
    ids=["1 bit", "palette", "color", "alpha", "16 bits", "transparent", "coarse", "progressive"],
)
def test_a_picture_in_any_form_of_its_format(finds, encode):
    assert finds(encode(EASY)) == "left"


def transparent(picture: Image.Image) -> Image.Image:
    """Black on nothing."""
    result = Image.new("LA", picture.size, (0, 0))
    result.putalpha(picture.point(lambda value: 255 - value))
    return result


def test_a_picture_on_standard_input(finds):
    assert finds("-", input=pictures.png(EASY)) == "left"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("https://example.org/", "the code holds something else than the name of a step"),
        (b"\xff\xfe\x00", "the code holds something else than the name of a step"),
        (label(uuid=OTHER), f"the code is another vehicle's ({OTHER}), not one of Rolling Chassis"),
        (label("rear"), "the code names a step that Rolling Chassis does not have"),
        (f"stepctl:{VEHICLE}/left?e={'0' * 32}&c={'0' * 16}", "the code holds something else than the name of a step"),
        (f"stepctl:{VEHICLE}", "the code holds a step's label that cannot be read: expected a vehicle's UUID in lower case, a slash and a step"),
        (former_label("rear"), "the code names a step that Rolling Chassis does not have"),
        ('{"uuid":"5f3c","stepId":"left"}', "the code holds a step's label that cannot be read: uuid is not a UUID"),
    ],
)
def test_a_code_of_something_else_is_told(refuses, content, error):
    assert refuses(pictures.code(content)) == (3, f"not located: {error}")


def test_a_picture_without_a_code_is_told(refuses, tmp_path):
    assert refuses(Image.new("L", (300, 200), 128)) == (3, f"not located: there is no code in {tmp_path}/picture")


# --- Pictures that are none, and worse ---


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(width: int, height: int, lines: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("keep", [9, 30, 60, 200, -20])
def test_a_png_that_was_cut_off_is_damaged(refuses, tmp_path, keep):
    assert refuses(pictures.png(EASY)[:keep]) == (65, f"{tmp_path}/picture: a damaged picture")


def test_a_jpeg_that_was_cut_off_is_damaged_or_shows_what_is_left(refuses, tmp_path):
    photograph = pictures.jpeg(pictures.photographed(EASY, 1))
    for keep in (4, 20, 100):
        assert refuses(photograph[:keep]) == (65, f"{tmp_path}/picture: a damaged picture")
    assert refuses(photograph[: len(photograph) // 8]) == (65, f"{tmp_path}/picture: a damaged picture")


@pytest.mark.arm64
def test_damage_anywhere_ends_in_one_line(read):
    dice = numpy.random.default_rng(4)
    whole = [pictures.png(EASY), pictures.jpeg(EASY)]
    for turn in range(40):
        damaged = bytearray(whole[turn % 2])
        for place in dice.integers(0, len(damaged), 1 + turn % 6):
            damaged[place] ^= int(dice.integers(1, 256))
        ended = read(bytes(damaged))
        assert ended.status in (0, 3, 65), ended
        assert ended.stderr.count("error: ") == (ended.status != 0)


@pytest.mark.parametrize(
    "content",
    [
        png_of(60_000, 60_000, bytes(1000)),
        png_of(10_000, 5_001, bytes(10_001 * 5_001)),
        b"\x89PNG\r\n\x1a\n" + bytes(33 << 20),
    ],
    ids=["60000 squared", "a line too many", "33 MB"],
)
def test_a_picture_that_is_too_large_is_not_unpacked(refuses, tmp_path, content):
    expected = f"{tmp_path}/picture: too large: at most 32 MB and 50 million pixels"
    assert refuses(content) == (65, expected)


def test_a_jpeg_that_is_too_large_is_not_unpacked(refuses, tmp_path):
    jpeg = bytearray(pictures.jpeg(EASY))
    frame = jpeg.index(b"\xff\xc0")
    jpeg[frame + 5 : frame + 9] = struct.pack(">HH", 65_000, 65_000)
    assert refuses(bytes(jpeg)) == (65, f"{tmp_path}/picture: too large: at most 32 MB and 50 million pixels")


def test_a_picture_that_libpng_itself_finds_too_large_is_told(refuses, tmp_path):
    assert refuses(png_of(0x7FFFFFFF, 0x7FFFFFFF, bytes(1000))) == (65, f"{tmp_path}/picture: a damaged picture")


def inks(picture: Image.Image, **options) -> bytes:
    """A JPEG for a printing press."""
    return pictures.encoded(picture.convert("RGB").convert("CMYK"), "JPEG", **options)


def separated(picture: Image.Image) -> Image.Image:
    """Dark by its black ink alone, as programs for print make it."""
    none = Image.new("L", picture.size, 0)
    return Image.merge("CMYK", (none, none, none, picture.point(lambda value: 255 - value)))


@pytest.mark.parametrize(
    "picture",
    [
        inks(EASY),
        inks(EASY, progressive=True),
        pictures.encoded(separated(EASY), "JPEG"),
        inks(ImageOps.invert(EASY)),
        # Without Adobe's mark nobody says whether 255 is no ink or all of it.
        re.sub(rb"\xff\xee\x00\x0eAdobe.{7}", b"", inks(EASY), flags=re.DOTALL),
    ],
    ids=["inks", "progressive", "black ink", "inverted", "no mark"],
)
def test_a_picture_in_the_colors_of_a_press_is_read(finds, picture):
    assert finds(picture) == "left"


def test_a_light_code_on_a_dark_ground_is_read(finds):
    light = ImageOps.invert(EASY)
    for picture in (light, pictures.photographed(light, 1), ImageOps.expand(light, 100, 30)):
        assert finds(picture) == "left"
    assert finds(pictures.jpeg(light.point(lambda value: 60 + value // 3))) == "left"


def test_the_codes_of_before_are_read(finds):
    assert finds(pictures.code(former_label())) == "left"
    assert finds(pictures.code(former_label("right", VEHICLE.upper()))) == "right"


def test_the_largest_picture_is_looked_at(refuses, tmp_path):
    bomb = png_of(7000, 7000, bytes(7001 * 7000))
    assert len(bomb) < 100_000, "it is small until it is unpacked"
    assert refuses(bomb) == (3, f"not located: there is no code in {tmp_path}/picture")


@pytest.mark.parametrize(
    "content",
    [b"\x89PN", b"hello", VEHICLE_FILE.encode()],
    ids=["a beginning", "text", "vehicle file"],
)
def test_what_is_no_picture_is_told(refuses, tmp_path, content):
    assert refuses(content) == (65, f"{tmp_path}/picture: not a picture: expected PNG or JPEG")


def test_a_picture_in_another_format_is_told_by_its_name(refuses, tmp_path, made):
    for name, content in {
        "GIF": pictures.encoded(EASY, "GIF"),
        "WebP": pictures.encoded(EASY, "WEBP"),
        "TIFF": pictures.encoded(EASY, "TIFF"),
        "BMP": pictures.encoded(EASY, "BMP"),
        "HEIF": b"\0\0\0\x18ftypheic" + bytes(100),
        "PDF": made("left.pdf", "--step", "left").read_bytes(),
        "SVG": made("left.svg", "--step", "left").read_bytes(),
    }.items():
        assert refuses(content) == (65, f"{tmp_path}/picture: {name}, which is not read: convert it to PNG or JPEG")
    assert refuses(b"") == (65, f"{tmp_path}/picture: it is empty")


def test_files_that_cannot_be_read_are_told(refuses, tmp_path):
    assert refuses("none.png", folder=tmp_path) == (66, "cannot open none.png: No such file or directory")
    assert refuses(tmp_path) == (74, f"cannot read {tmp_path}: Is a directory")
    (tmp_path / "closed.png").touch(mode=0)
    told = refuses(tmp_path / "closed.png", prefix=AS_ANYBODY)
    assert told == (77, f"cannot open {tmp_path}/closed.png: Permission denied")
    assert refuses("-") == (65, "standard input: it is empty")


def test_a_terminal_is_no_picture(stepctl, car):
    command = [STEPCTL, "locate", "--by", "qr", "--qr", "-", "--vehicle", car]
    with closing(Terminal(command, stepctl.environment)) as terminal:
        assert terminal.ends() == 64
        assert b"error: standard input is a terminal" in terminal.written


# --- The process that reads them ---


@pytest.fixture
def waiting(stepctl, car, tmp_path):
    """stepctl, whose stepctl-qr waits for a picture; and the number of that."""
    arguments = ["locate", "--by", "qr", "--qr", "-", "--vehicle", car]
    with closing(stepctl.start(tmp_path / "log", *arguments, stdin=subprocess.PIPE)) as running:
        child = wait_until(lambda: children(running.process), "a child")[0]
        wait_until(lambda: "Seccomp:\t2" in Path(f"/proc/{child}/status").read_text(), "it is confined")
        yield running, child
        running.process.stdin.close()


def test_it_has_given_up_all_that_it_does_not_need(waiting):
    _, child = waiting
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{child}/status").read_text().splitlines())
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert sorted(os.listdir(f"/proc/{child}/fd")) == ["0", "1", "2"]
    assert os.readlink(f"/proc/{child}/fd/2") == "/dev/null"
    limits = Path(f"/proc/{child}/limits").read_text()
    assert re.search(r"Max cpu time +30 +30 ", limits) and re.search(r"Max core file size +0 +0 ", limits)
    assert re.search(rf"Max address space +{1 << 30} +{1 << 30} ", limits)
    assert Path(f"/proc/{child}/comm").read_text() == "stepctl-qr\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_both(waiting, number):
    running, child = waiting
    running.signal(number)
    ended = running.ends()
    assert (ended.status, ended.stdout, ended.stderr) == (-number, "", "")
    wait_until(lambda: not Path(f"/proc/{child}").exists(), "the child is gone")


def test_it_does_not_outlive_stepctl(waiting):
    running, child = waiting
    running.kill()
    wait_until(lambda: not Path(f"/proc/{child}").exists(), "the child is gone")


def test_its_death_is_told_in_one_line(waiting):
    running, child = waiting
    os.kill(child, signal.SIGSEGV)
    ended = running.ends()
    assert (ended.status, ended.stdout) == (65, "")
    assert ended.error == (
        "standard input: the picture cannot be read: it takes too much time or memory, or is an attack"
    )


def test_where_it_is_not_installed_is_told(stepctl, car, tmp_path):
    shutil.copy(STEPCTL, tmp_path / "stepctl")
    (tmp_path / "picture.png").write_bytes(pictures.png(EASY))
    command = [tmp_path / "stepctl", "locate", "--by", "qr", "--qr", tmp_path / "picture.png", "--vehicle", car]
    ended = subprocess.run(command, capture_output=True, text=True, env=stepctl.environment)
    assert ended.returncode == 69 and "error: stepctl-qr, which reads pictures, is missing" in ended.stderr
    place = tmp_path / "libexec/stepctl"
    place.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    shutil.move(tmp_path / "stepctl", tmp_path / "bin/stepctl")
    shutil.copy(BINARIES / "stepctl-qr", place)
    ended = subprocess.run([tmp_path / "bin/stepctl", *command[1:]], capture_output=True, env=stepctl.environment)
    assert ended.returncode == 0


def test_nobody_else_starts_it(stepctl):
    ended = subprocess.run([BINARIES / "stepctl-qr"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (ended.returncode, ended.stdout) == (64, "")
    assert ended.stderr == "stepctl-qr reads pictures for stepctl, which starts it\n"


# --- Cameras ---


def test_a_camera_that_is_not_there_is_told(refuses):
    assert not Path("/dev/video73").exists()
    assert refuses("/dev/video73") == (69, "there is no camera /dev/video73: is it plugged in?")


@pytest.fixture
def video_device():
    """A device of Video4Linux behind which there is no driver."""
    if os.geteuid() != 0:
        pytest.skip("only root makes devices")
    folder = Path(tempfile.mkdtemp(prefix="stepctl-video."))
    try:
        os.mknod(folder / "video", stat.S_IFCHR | 0o600, os.makedev(81, 255))
        os.close(os.open(folder / "video", os.O_RDONLY | os.O_PATH))
    except PermissionError:
        shutil.rmtree(folder)
        pytest.skip("devices cannot be made here")
    yield folder / "video"
    shutil.rmtree(folder)


def test_a_camera_that_has_gone_is_told(refuses, video_device):
    status, error = refuses(video_device)
    if "Permission" in error or "not permitted" in error:
        pytest.skip("this machine keeps devices closed")
    assert status in (69, 74)
    assert error.startswith((f"cannot open {video_device}: No such device", f"{video_device}: "))


def test_a_camera_that_others_may_not_use_is_told(refuses, video_device):
    video_device.parent.chmod(0o755)
    video_device.chmod(0)
    told = refuses(video_device, prefix=AS_ANYBODY)
    assert told == (77, f"cannot open {video_device}: Permission denied")
