"""What tags hold, by another program: nfcpy reads and writes them through a chip that the tests play."""

import json

import ndef

import nfcpy_reader
import stepproto as proto
from chip import Chip
from programs import Ended
from type2 import Type2
from type4 import Type4

OTHER_UID = "04AABBCCDDEEFF"
DYNAMIC_UID = "04DE5F1EACC040"  # of an NTAG 424 DNA


def label(vehicle, step: str) -> str:
    return proto.label(vehicle.uuid, step)


def former_label(vehicle, step: str) -> str:
    """As tags were written before."""
    return proto.json_label(vehicle.uuid, step)


def records(tag) -> list[ndef.Record] | None:
    """What nfcpy reads of a tag; None where it finds no NDEF."""
    with Chip(tag) as chip, nfcpy_reader.opened(chip.path) as frontend:
        found = nfcpy_reader.found(frontend)
        return found.ndef and list(found.ndef.records)


def texts(tag) -> list[str]:
    return [record.text for record in records(tag)]


def written(tag: Type2 | Type4, *what: ndef.Record) -> Type2 | Type4:
    """The tag, after nfcpy wrote to it."""
    with Chip(tag) as chip, nfcpy_reader.opened(chip.path) as frontend:
        nfcpy_reader.found(frontend).ndef.records = what
    return tag


class TagMaker:
    """An operator who makes dynamic tags of those that are at the chip."""

    def __init__(self, vehicle, chip):
        self.vehicle, self.chip = vehicle, chip

    def provisions(self, *arguments, step="left", vehicle=None) -> Ended:
        file = (vehicle or self.vehicle).folder / "vehicle.toml"
        given = ("--step", step, "--vehicle", file, "--nfc", self.chip.connection)
        for _ in range(2):
            ended = self.vehicle.stepctl("provision", "tag", "--sdm", *given, *arguments)
            # On a busy machine the chip may be later than libnfc waits. The tag has seen nothing then.
            if ended.status != 69 or "no reader answers" not in ended.stderr:
                break
        for secret in self.kept + [self.master] if self.known else []:
            self.vehicle.transcript.secrets[secret] = "a tag's key"
        return ended

    @property
    def known(self) -> dict:
        """The tag's entry in the controller's file."""
        found = json.loads((self.vehicle.folder / "keys/tags.json").read_text())
        return next((entry for entry in found if entry["uid"] == DYNAMIC_UID), {})

    @property
    def kept(self) -> list[str]:
        return [self.known["meta_read_key"], self.known["file_read_key"]]

    @property
    def master(self) -> str:
        (file,) = (self.vehicle.folder / "operator/tags").iterdir()
        return file.read_text().strip()

    def forgets(self):
        """As if the tag had never been here."""
        (self.vehicle.folder / "keys/tags.json").write_text("[]\n")
        for file in self.vehicle.folder.glob("operator/tags/*"):
            file.unlink()
