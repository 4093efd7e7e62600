"""arm64 programs beside amd64's: the same answer to the same bytes, and the kernel's numbers of system calls.

Tests/Arm64/run.sh sets STEPCTL_BIN_DIR to arm64 programs, STEPCTL_AMD64_BIN_DIR to those of the machine, and
STEPCTL_ARM64 to the folder of filters (filter.c) and of the sysroot.
"""

import json
import lzma
import os
import random
import re
import struct
import subprocess
from pathlib import Path

import pytest

import captures
from programs import BINARIES, REPOSITORY

FOLDER = os.environ.get("STEPCTL_ARM64")
pytestmark = [
    pytest.mark.arm64, pytest.mark.skipif(not FOLDER, reason="needs arm64 programs: Tests/Arm64/run.sh has them"),
]
INPUTS, SEED = 20_000, 30


def output(folder: str, *command) -> tuple[int, str, str]:
    """What a program of a folder says to a command."""
    ended = subprocess.run(
        [Path(folder) / "stepctl", *command], capture_output=True, text=True, timeout=300,
        env={"HOME": "/nonexistent", "STEPCTL_CONFIG_HOME": "/nonexistent"}
        | {name: os.environ[name] for name in ("PATH", "QEMU_CPU")})
    return ended.returncode, ended.stdout, ended.stderr


def answers_alike(*command) -> str:
    status, stdout, stderr = output(BINARIES, *command)
    assert (status, stdout, stderr) == output(os.environ["STEPCTL_AMD64_BIN_DIR"], *command)
    assert status == 0, stderr
    return stdout


@pytest.mark.parametrize("name", sorted(path.name for path in BINARIES.glob("step*") if "." not in path.name))
def test_the_programs_are_for_arm64(name):
    head = (BINARIES / name).read_bytes()[:20]
    # EM_AARCH64 of elf(5), little-endian.
    assert head[:6] == b"\x7fELF\x02\x01" and struct.unpack_from("<H", head, 18) == (183,)


def test_the_programs_say_the_commit_that_they_are_of():
    """And where packages are made of them, which takes no emulator (Packaging/packages.sh)."""
    head = subprocess.check_output(["git", "rev-parse", "--short=12", "HEAD"], cwd=REPOSITORY, text=True).strip()
    version, commit, architecture, *_ = output(BINARIES, "--version")[1].splitlines()
    # With a +, files were changed.
    assert commit.removesuffix("+") == f"commit {head}" and architecture == "architecture arm64"
    stamp = re.compile(rf"\[ *0\]  {re.escape(version)} {re.escape(commit[7:])} \d+ arm64 [\d.]+$", re.MULTILINE)
    for name in ("stepctl", "stepctl-operator", "stepd"):
        assert stamp.search(
            subprocess.check_output(["readelf", "--string-dump=.stepctl", BINARIES / name], text=True))


def random_packets(numbers: random.Random):
    """Events as a radio sends them: good ones, ones with wrong bytes, others of any length, and anything at all."""
    for index in range(INPUTS):
        data = captures.frame(captures.VEHICLE, numbers.randrange(65536), numbers.randrange(65536))
        packet = bytearray(captures.reports(data, numbers.randint(-128, 127), numbers.randrange(65536)))
        match index % 4:
            case 1:
                for _ in range(numbers.randint(1, 4)):
                    packet[numbers.randrange(3, len(packet))] = numbers.randrange(256)
            case 2:
                kind = numbers.choice([0x02, 0x0D, numbers.randrange(256)])
                packet = captures.event(bytes([kind]) + numbers.randbytes(numbers.randint(0, 250)))
            case 3:
                packet = b"\x04" + numbers.randbytes(numbers.randint(0, 260))
        yield bytes(packet)


def test_random_packets_are_read_alike(tmp_path):
    packets = random_packets(random.Random(SEED))
    capture = tmp_path / "random.btsnoop"
    capture.write_bytes(
        captures.HEADER + b"".join(captures.record(packet, index / 1000) for index, packet in enumerate(packets)))
    heard = answers_alike("scan", "--json", "--radio", f"btsnoop:{capture}").splitlines()
    assert INPUTS // 4 <= len(heard) < INPUTS


def test_random_numbers_are_read_and_written_alike(tmp_path):
    """Frames of a traffic feed with numbers in any notation; what is shown is computed from them (sqrt, atan2)."""
    numbers = random.Random(SEED)

    def number(limit: float) -> str:
        value = numbers.uniform(-limit, limit) * 10 ** -numbers.choice([0, 0, 0, 1, 5, 20, 300])
        return numbers.choice(["%r", "%.3f", "%.17e", "%.1E"]) % value

    def road_user(index: int) -> str:
        place = f'{{"x": 48.{numbers.randrange(10**17):017}, "y": {numbers.uniform(-179, 179)!r}, "z": {number(99)}}}'
        speed = f'{{"x": {number(60)}, "y": {number(60)}, "z": {number(6)}}}'
        return (f'{{"id": "{index}", "category": "car", "position": {place}, "speed": {speed}, '
                '"shape": {"length": 1.8, "width": 0.6, "height": 0}}')

    def frame(index: int) -> str:
        users = ", ".join(road_user(user) for user in range(50))
        time = f'"timestampSecs": "1700000000", "timestampNsecs": "{index * 10**7}"'
        return f'{{"received": {1.7e9 + index / 100}, "frame": {{"section": "S1", {time}, "vehicles": [{users}]}}}}\n'

    recording = tmp_path / "random.jsonl"
    recording.write_text("".join(map(frame, range(INPUTS // 50 // 5))))
    shown = answers_alike("traffic", "watch", "--feed", f"file:{recording}", "--json").splitlines()
    assert sum(len(json.loads(line)["objects"]) for line in shown) == INPUTS // 5


def test_a_recorded_road_is_guarded_alike(tmp_path):
    fixtures = REPOSITORY / "Tests/Fixtures/traffic"
    lines = lzma.open(fixtures / "street.jsonl.xz", "rt").readlines()
    (tmp_path / "street.jsonl").write_text("".join(lines[:300]))
    answers_alike("traffic", "guard", tmp_path / "street.jsonl", "--scene", fixtures / "scene.json", "--json")


def test_a_recorded_walk_is_located_alike(tmp_path):
    (tmp_path / "vehicle.toml").write_text(captures.VEHICLE_FILE)
    walk = REPOSITORY / "Tests/Demo/walk.py"
    subprocess.run([walk, "--side", "left", "--out", tmp_path / "walk.btsnoop", "--uuid", captures.VEHICLE], check=True)
    radio = f"btsnoop:{tmp_path}/walk.btsnoop"
    decided = answers_alike(
        "locate", "--watch", "--interval", "0.2", "--json", "--radio", radio, "--vehicle", tmp_path / "vehicle.toml")
    assert len(decided.splitlines()) > 20


def calls_that_pass(filter: bytes, architecture: int) -> set[int]:
    """The system calls that a seccomp filter lets through: classic BPF, run here for each number."""
    program = [struct.unpack_from("<HBBI", filter, at) for at in range(0, len(filter), 8)]

    def answer(number: int) -> int:
        at, accumulator = 0, 0
        while True:
            code, when, otherwise, value = program[at]
            at += 1
            match code:
                case 0x20:  # BPF_LD | BPF_W | BPF_ABS: seccomp_data begins with the number and the architecture
                    accumulator = {0: number, 4: architecture}[value]
                case 0x15:  # BPF_JMP | BPF_JEQ | BPF_K
                    at += when if accumulator == value else otherwise
                case 0x06:  # BPF_RET | BPF_K
                    return value

    answers = {number: answer(number) for number in range(1024)}
    assert set(answers.values()) <= {0x7FFF0000, 0x00050000 | 1}, "allow, and EPERM"
    return {number for number, value in answers.items() if value == 0x7FFF0000}


def test_the_filter_has_the_kernels_numbers_for_arm64(tmp_path):
    pictures_of_it = tmp_path / "left.png"
    (tmp_path / "car.toml").write_text(captures.VEHICLE_FILE)
    car = ("--vehicle", tmp_path / "car.toml")
    assert output(BINARIES, "provision", "qr", "--step", "left", "--output", pictures_of_it, *car)[0] == 0
    found = output(BINARIES, "locate", "--by", "qr", "--qr", pictures_of_it, *car)
    assert found[0] == 0, found
    filter = Path(FOLDER, "stepctl-qr.filter").read_bytes()
    # AUDIT_ARCH_AARCH64 and AUDIT_ARCH_X86_64 (linux/audit.h).
    passing = calls_that_pass(filter, 0xC00000B7)
    assert calls_that_pass(filter, 0xC000003E) == set()
    table = Path(FOLDER, "sysroot/usr/include/asm-generic/unistd.h").read_text()
    names = {
        int(number): name
        for name, number in re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)$", table, re.MULTILINE)}
    assert {names[number] for number in passing} == {
        "read", "write", "mmap", "munmap", "mremap", "mprotect", "madvise", "brk", "futex", "clock_gettime", "getrandom",
        "rt_sigreturn", "exit", "exit_group"}
