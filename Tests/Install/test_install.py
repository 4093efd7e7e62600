"""`make install` and `make uninstall`, of the programs in STEPCTL_BIN_DIR, into a folder of its own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(os.environ["STEPCTL_BIN_DIR"])
SHELLS = {
    "bash": ("share/bash-completion/completions/stepctl", ["bash", "-c", 'source "$0" && complete -p stepctl']),
    "zsh": ("share/zsh/site-functions/_stepctl", ["zsh", "-n"]),
    "fish": ("share/fish/vendor_completions.d/stepctl.fish", ["fish", "--no-execute"]),
}


def make(*arguments):
    subprocess.run(["make", "-s", f"BIN={BIN}", *arguments], cwd=ROOT, check=True)


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("root") / "usr"
    make("install", f"PREFIX={prefix}")
    yield prefix


@pytest.mark.parametrize("program", ["stepctl", "stepd"])
def test_an_installed_program_is_the_built_one(prefix, program):
    assert (prefix / "bin" / program).read_bytes() == (BIN / program).read_bytes()
    assert os.access(prefix / "bin" / program, os.X_OK)


@pytest.mark.parametrize("program", ["stepctl-operator", "stepctl-nfc", "stepctl-qr", "stepctl-traffic"])
def test_a_program_that_stepctl_starts_is_where_it_looks_for_it(prefix, program):
    assert (prefix / "libexec/stepctl" / program).read_bytes() == (BIN / program).read_bytes()


def test_stepctl_starts_it_from_there(prefix, tmp_path):
    (tmp_path / "car.toml").write_text(
        'name = "Car"\nuuid = "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"\n[[steps]]\nid = "left"\nside = "left"\nmajor = 1\n')
    ended = subprocess.run(
        [prefix / "bin/stepctl", "provision", "tag", "--step", "left", "--vehicle", "car.toml"],
        cwd=tmp_path, capture_output=True, text=True, env={"LIBNFC_AUTO_SCAN": "false"})
    # It was libnfc that did not know of any.
    assert (ended.returncode, "there is no NFC reader" in ended.stderr) == (69, True)


@pytest.mark.parametrize("shell", [pytest.param(shell, marks=needs(shell)) for shell in SHELLS])
def test_a_shell_can_read_its_completions(prefix, shell):
    file, command = SHELLS[shell]
    subprocess.run([*command, prefix / file], check=True, stdout=subprocess.DEVNULL)


@needs("man")
def test_man_finds_every_page(prefix):
    folder = prefix / "share/man"
    for page in ROOT.glob("man/*.[1-8]"):
        section = page.suffix[1:]
        found = subprocess.check_output(
            ["man", "-w", section, page.stem], text=True, env={**os.environ, "MANPATH": str(folder)})
        assert Path(found.strip()) == folder / f"man{section}" / page.name


@needs("systemd-analyze")
def test_systemd_understands_the_unit(prefix):
    unit = prefix / "lib/systemd/system/stepd.service"
    assert f"ExecStart={prefix}/bin/stepd " in unit.read_text()
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    assert (verified.returncode, verified.stderr) == (0, "")


@needs("systemd-analyze")
@needs("mosquitto")
def test_systemd_understands_the_brokers_unit_too(prefix):
    unit = prefix / "lib/systemd/system/stepd-broker.service"
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    assert (verified.returncode, verified.stderr) == (0, "")


@needs("systemd-analyze")
@pytest.mark.parametrize("unit", ["stepd", "stepd-broker"])
def test_the_unit_is_confined(unit):
    # In tenths of a point; 1.2 of 10 are left: the network, and a broker at an address that only its user knows.
    subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=15", "--no-pager",
         ROOT / f"Sources/Programs/stepd/{unit}.service"],
        check=True, stdout=subprocess.DEVNULL)


def additions() -> list[str]:
    """What the unit's comments say is to be added for this or that, each a drop-in of its own."""
    lines = (ROOT / "Sources/Programs/stepd/stepd.service").read_text().splitlines()
    indented = [line[4:] if line.startswith("#   ") else "" for line in lines]
    return [block for block in "\n".join(indented).split("\n\n") if block.strip()]


@needs("systemd-analyze")
@pytest.mark.parametrize("addition", additions(), ids=["servos", "devices", "beacons"])
def test_systemd_understands_what_the_unit_says_is_to_be_added(prefix, tmp_path, addition):
    unit = tmp_path / "stepd.service"
    installed = (prefix / "lib/systemd/system/stepd.service").read_text()
    unit.write_text(f"{installed}\n{addition}\n")
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    assert (verified.returncode, verified.stderr) == (0, "")
    # Beacons cost most: 1.8 of 10.
    subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", unit],
        check=True, stdout=subprocess.DEVNULL)


def test_uninstalling_leaves_no_file(prefix, tmp_path):
    make("install", f"DESTDIR={tmp_path}", "PREFIX=/usr")
    installed = {file.relative_to(tmp_path) for file in tmp_path.rglob("*") if file.is_file()}
    assert {file.relative_to(prefix.parent) for file in prefix.rglob("*") if file.is_file()} == installed
    assert "ExecStart=/usr/bin/stepd " in (tmp_path / "usr/lib/systemd/system/stepd.service").read_text()
    make("uninstall", f"DESTDIR={tmp_path}", "PREFIX=/usr")
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]
