"""What `make deb` refuses to make packages of."""

import subprocess

import pytest

from built import PROGRAMS, ROOT, STAMP, VERSION, program

OWN = subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip()
SAYING = ("stepctl", "stepd", "stepctl-operator")
OTHER = {"amd64": "arm64", "arm64": "amd64"}[OWN]


@pytest.fixture
def programs(tmp_path):
    for name in PROGRAMS:
        # Those that a library may end do not say it.
        program(tmp_path / name, STAMP.format(architecture=OWN) if name in SAYING else None)
    return tmp_path


def refusal(folder):
    ended = subprocess.run(
        [ROOT / "Packaging/packages.sh", folder, folder / "fleet"], capture_output=True, text=True)
    assert ended.stdout == ""
    return ended.returncode, ended.stderr.replace(str(folder), "BIN")


NO_FLEET = "packages.sh: there is no BIN/fleet/stepfleet, so there will be no package of it\n"


def test_programs_that_are_not_there_are_named(programs):
    (programs / "stepd").unlink()
    (programs / "stepctl-qr").unlink()
    assert refusal(programs) == (66, "packages.sh: BIN lacks stepd stepctl-qr: build them first\n")


def test_a_program_that_does_not_say_its_commit(programs):
    program(programs / "stepd", None)
    assert refusal(programs) == (
        65,
        NO_FLEET + "packages.sh: BIN/stepd does not say which commit it is of: build it with make, in a clone of the"
        " repository\n")


def test_programs_of_two_commits(programs):
    other = STAMP.format(architecture=OWN).replace("0123456789ab", "ba9876543210")
    program(programs / "stepd", other)
    own = STAMP.format(architecture=OWN)
    assert refusal(programs) == (
        65, NO_FLEET + f'packages.sh: BIN/stepd is "{other}", and BIN/stepctl is "{own}": build both again\n')


def test_programs_for_another_processor(programs):
    for name in SAYING:
        program(programs / name, STAMP.format(architecture=OTHER))
    assert refusal(programs) == (
        65, NO_FLEET + f"packages.sh: the programs in BIN are for {OTHER}, not for {OWN}\n")


def test_programs_of_another_version(programs):
    for name in SAYING:
        program(programs / name, STAMP.format(architecture=OWN).replace(VERSION, "9.9.9"))
    assert refusal(programs) == (65, NO_FLEET + "packages.sh: debian/changelog is not of version 9.9.9\n")
