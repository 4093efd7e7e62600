"""A rider's own device: its home, its keys, and what its rider types."""

import tomllib
from pathlib import Path

from programs import Ended, Stepctl, Transcript


class Device:
    """Its keys never leave it."""

    def __init__(self, home: Path, transcript: Transcript):
        home.mkdir()
        self.home, self.stepctl = home, Stepctl(home, transcript)
        self.keys, self.vehicles = home / ".config/stepctl/device", home / ".config/stepctl/vehicles"
        self.key = self.keys / "device.jwk"

    def types(self, *arguments, **more) -> Ended:
        return self.stepctl(*arguments, **more)

    def asks(self, *arguments, name="anna", **more) -> str:
        """The request for access that an operator answers."""
        made = self.types("enroll", "--name", name, *arguments, **more)
        assert made.status == 0, made
        return made.stdout.strip()

    def imports(self, *arguments, **more) -> Ended:
        return self.types("config", "import", *arguments, "--yes", **more)

    def trusts(self, *arguments) -> dict:
        """What it imported."""
        ended = self.imports(*arguments, "--json")
        assert ended.status == 0, ended
        return ended.json

    def refuses(self, *arguments, **more) -> tuple[int, str]:
        """Imports nothing: the status and the one line."""
        before = self.files
        ended = self.imports(*arguments, **more)
        assert ended.stdout == "" and self.files == before
        return ended.status, ended.error

    def gets_access(self, stepctl: Stepctl, folder: Path, *arguments):
        """Asks an operator, whose vehicle is in `folder`, and imports the answer."""
        access = granted(stepctl, folder, self.asks(), *arguments)
        imported = self.imports("-", input=access.encode())
        assert imported.status == 0, imported

    def opens(self, radio: str, *arguments, **more) -> Ended:
        """Opens the left step of the only vehicle that it knows."""
        return self.types("open", "--side", "left", "--radio", radio, *arguments, **more)

    @property
    def files(self) -> dict[str, bytes]:
        files = (path for path in self.home.rglob("*") if path.is_file())
        return {str(path.relative_to(self.vehicles)): path.read_bytes() for path in files}

    def knows(self, name: str) -> dict:
        return tomllib.loads((self.vehicles / name / "vehicle.toml").read_text())


def granted(stepctl: Stepctl, folder: Path, request: str | Path, *arguments) -> str:
    """The access that an operator gives to a device that asks."""
    ended = stepctl("provision", "token", folder, "--device", request, *arguments)
    assert ended.status == 0, ended
    return ended.stdout.strip()
