"""Pictures of codes as cameras take them: turned, blurred, small, at an angle, in uneven light, with noise."""

import io
import math
import subprocess

import numpy
from PIL import Image, ImageFilter


def code(text: str | bytes, level: str = "M", scale: int = 8) -> Image.Image:
    """A code with its quiet zone, by a program of others."""
    data = text.encode() if isinstance(text, str) else text
    arguments = ["qrencode", "-8", "-o", "-", "-l", level, "-s", str(scale)]
    png = subprocess.run(arguments, input=data, capture_output=True, check=True).stdout
    return Image.open(io.BytesIO(png)).convert("RGBA").convert("L")


def rotated(picture: Image.Image, degrees: float) -> Image.Image:
    return picture.rotate(degrees, expand=True, fillcolor=255, resample=Image.Resampling.BICUBIC)


def blurred(picture: Image.Image, radius: float) -> Image.Image:
    return picture.filter(ImageFilter.GaussianBlur(radius))


def smaller(picture: Image.Image, width: int) -> Image.Image:
    return picture.resize((width, width * picture.height // picture.width), Image.Resampling.BOX)


def side_by_side(*pictures: Image.Image, gap: int = 30) -> Image.Image:
    width = sum(picture.width + gap for picture in pictures) + gap
    sheet = Image.new("L", (width, max(picture.height for picture in pictures) + 2 * gap), 255)
    left = gap
    for picture in pictures:
        sheet.paste(picture, (left, gap))
        left += picture.width + gap
    return sheet


def photographed(
    picture: Image.Image, seed: int, *, tilt: float = 0.2, blur: float = 1.0, noise: float = 6.0, share: float = 0.45
) -> Image.Image:
    """The label on a wall, in a picture of 1280 by 960.

    `tilt` is how far the corners are from a square's, as a part of its side; `share` how much of the picture's height
    the label takes.
    """
    dice = numpy.random.default_rng(seed)
    width, height = 1280, 960
    side = height * share
    turn = dice.uniform(0, 2 * math.pi)
    middle = numpy.array([width, height]) / 2 + dice.uniform(-0.1, 0.1, 2) * height
    square = numpy.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * side / 2
    square = square + dice.uniform(-tilt, tilt, (4, 2)) * side / 2
    rotation = numpy.array([(math.cos(turn), -math.sin(turn)), (math.sin(turn), math.cos(turn))])
    corners = square @ rotation.T + middle

    coefficients = perspective(corners, picture.size)
    label = picture.transform((width, height), Image.Transform.PERSPECTIVE, coefficients, Image.Resampling.BICUBIC)
    mask = Image.new("L", picture.size, 255).transform((width, height), Image.Transform.PERSPECTIVE, coefficients)
    wall = clouds(dice, width, height, 8) * 120 + 60
    scene = numpy.where(numpy.asarray(mask) > 127, numpy.asarray(label, dtype=float), wall)
    # A lamp at one side, and a shadow.
    light = 0.35 + 0.65 * clouds(dice, width, height, 3)
    scene = (scene * 0.8 + 20) * light
    scene = numpy.asarray(blurred(Image.fromarray(scene.clip(0, 255).astype("uint8")), blur), dtype=float)
    scene += dice.normal(0, noise, scene.shape)
    return Image.fromarray(scene.clip(0, 255).astype("uint8"))


def perspective(corners: numpy.ndarray, size: tuple[int, int]) -> tuple:
    """What Pillow takes to bring a picture of that size between four corners, from the top left on."""
    sources = [(0, 0), (size[0], 0), size, (0, size[1])]
    rows, values = [], []
    for (x, y), (u, v) in zip(corners, sources, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return tuple(numpy.linalg.solve(numpy.array(rows, dtype=float), numpy.array(values, dtype=float)))


def clouds(dice, width: int, height: int, grains: int) -> numpy.ndarray:
    """Something smooth between 0 and 1."""
    noise = Image.fromarray((dice.random((grains, grains)) * 255).astype("uint8"))
    return numpy.asarray(noise.resize((width, height), Image.Resampling.BICUBIC), dtype=float) / 255


def png(picture: Image.Image) -> bytes:
    return encoded(picture, "PNG")


def jpeg(picture: Image.Image, quality: int = 75) -> bytes:
    return encoded(picture, "JPEG", quality=quality)


def encoded(picture: Image.Image, format: str, **options) -> bytes:
    file = io.BytesIO()
    picture.save(file, format, **options)
    return file.getvalue()


def benchmark(text: str) -> dict[str, list[Image.Image]]:
    """Kinds of pictures, each from easy to beyond what can be read."""
    plain = code(text)
    return {
        "rendered": [code(text, level, scale) for level in "LMQH" for scale in (2, 3, 4, 6, 8)],
        "rotated": [rotated(plain, degrees) for degrees in range(0, 360, 18)],
        "blurred": [blurred(plain, radius) for radius in (2 + step / 4 for step in range(20))],
        "small": [smaller(plain, width) for width in range(62, 142, 4)],
        "photographed": [
            photographed(plain, seed, tilt=0.05 + seed % 10 / 25, blur=0.5 + seed % 7 / 2, noise=3 + 3 * (seed % 4),
                         share=0.2 + seed % 5 / 10)
            for seed in range(100, 160)
        ],
    }
