"""Programs that say what they are built from, and packages of them: small, but of the real kind."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = ["stepctl", "stepd", "stepctl-operator", "stepctl-nfc", "stepctl-qr", "stepctl-traffic"]
VERSION = subprocess.check_output(["dpkg-parsechangelog", "-S", "Version"], cwd=ROOT, text=True).strip()
COMMIT, TIME = "0123456789ab", 1_800_000_000
STAMP = f"{VERSION} {COMMIT} {TIME} {{architecture}} 6.3.1"


def program(path: Path, stamp: str | None = STAMP.format(architecture="amd64")) -> Path:
    """An ELF file with Sources/Libraries/CBuild's section, of this machine whatever the stamp says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = 'int main() { return 0; }\nconst char swift[] = "Swift/Array.swift";\n'
    if stamp:
        source += f'__attribute__((used, section(".stepctl"))) static const char stamp[] = "{stamp}";\n'
    subprocess.run(["gcc", "-x", "c", "-o", path, "-"], input=source, text=True, check=True)
    return path


def package(folder: Path, name: str, suite: str, architecture: str, time: int = TIME, **fields: str) -> Path:
    """A package as Packaging/packages.sh makes it, of one program."""
    release = {"bookworm": "deb12", "trixie": "deb13"}[suite]
    version = f"{VERSION}+{time}.{COMMIT}~{release}"
    tree = folder / "trees" / f"{name}-{suite}-{architecture}-{time}"
    program(tree / "usr/bin" / name, STAMP.format(architecture=architecture))
    fields = {
        "Package": name, "Version": version, "Architecture": architecture, "Maintainer": "Nobody <nobody@example>",
        "Depends": "libc6 (>= 2.36), libssl3t64 (>= 3.0.0) | libssl3", "Recommends": "bluez",
        "Static-Built-Using": "gcc-12 (= 12.2.0-14), tomlplusplus (= 3.3.0+dfsg-1)",
        "Description": f"{name} in a test"} | fields
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN/control").write_text("".join(f"{key}: {value}\n" for key, value in fields.items()))
    result = folder / "deb" / suite / architecture / f"{name}_{version}_{architecture}.deb"
    result.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "--build", tree, result], check=True, stdout=subprocess.DEVNULL,
        env=os.environ | {"SOURCE_DATE_EPOCH": str(time)})
    return result
