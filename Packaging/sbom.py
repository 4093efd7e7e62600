#!/usr/bin/env python3
"""Writes what is in the Debian packages of one build as a bill of materials (CycloneDX 1.6, JSON):

    sbom.py OUTPUT PACKAGE.deb...

Of each package: what is linked into its programs (Swift's library and packages, libstdc++ and libgcc, toml++), and the
Debian packages with the libraries that they load. Swift's packages are those of Package.resolved; the rest is read from
the packages themselves. The same packages give the same bytes.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import uuid
from datetime import datetime, timezone
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.contact import OrganizationalEntity
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

ROOT = Path(__file__).parents[1]
# The parts of Swift's toolchain that are linked statically, each with bytes that are in a program if it is.
SWIFT_PARTS = {
    "swift": b"Swift/Array.swift",
    "swift-corelibs-libdispatch": b"BUG IN CLIENT OF LIBDISPATCH",
    "swift-foundation": b"NSCocoaErrorDomain",
    "swift-foundation-icu": b"icudt",
}


def field(package: Path, name: str) -> str:
    return subprocess.check_output(["dpkg-deb", "--field", package, name], text=True).strip()


def relations(text: str) -> list[tuple[str, str]]:
    """The packages of a field, each with the version that is wanted of it; of alternatives the first."""
    parts = (part.split("|")[0].strip() for part in text.split(","))
    return [re.fullmatch(r"(\S+?)(?::\w+)?(?: \((.*)\))?", part).groups(default="") for part in parts if part]


def programs(package: Path) -> list[Path]:
    """Extracts the package into the working directory."""
    subprocess.run(["dpkg-deb", "--extract", package, package.stem], check=True)
    files = [path for path in sorted(Path(package.stem).rglob("*")) if path.is_file() and not path.is_symlink()]
    return [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]


def stamp(program: Path) -> str | None:
    """What the program says of its build (Sources/Libraries/CBuild)."""
    dumped = subprocess.run(
        ["readelf", "--string-dump=.stepctl", program], capture_output=True, text=True,
        env=os.environ | {"LC_ALL": "C"})
    found = re.search(r"^ *\[ *0\]  (.*)$", dumped.stdout, re.M)
    return found and found[1]


def swift_packages(resolved: Path) -> list[Component]:
    """The packages that the file pins."""
    components = []
    for pin in json.loads(resolved.read_text())["pins"]:
        group, name = re.sub(r"^https://|\.git$", "", pin["location"]).rsplit("/", 1)
        state = pin["state"]
        version = state.get("version") or state["revision"]
        purl = PackageURL("swift", group, name, version)
        components.append(Component(
            type=ComponentType.LIBRARY, group=group, name=name, version=version, purl=purl, bom_ref=str(purl),
            supplier=OrganizationalEntity(name=group.split("/")[-1]),
            properties=[Property(name="stepctl:git-revision", value=state["revision"])],
            external_references=[ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(pin["location"]))]))
    return components


def swift_parts(content: bytes, version: str) -> list[Component]:
    """The parts of Swift's toolchain in programs."""
    components = []
    for name in (name for name, mark in SWIFT_PARTS.items() if mark in content):
        purl = PackageURL("github", "swiftlang", name, version)
        components.append(Component(
            type=ComponentType.LIBRARY, name=name, version=version, purl=purl, bom_ref=str(purl),
            cpe=f"cpe:2.3:a:apple:swift:{version}:*:*:*:*:*:*:*" if name == "swift" else None,
            supplier=OrganizationalEntity(name="swiftlang"),
            licenses=[LicenseExpression("Apache-2.0 WITH Swift-exception")]))
    return components


def debian_packages(package: Path, key: str, scope: ComponentScope, qualifiers: dict[str, str]) -> list[Component]:
    """The packages of Debian's that a field names."""
    components = []
    for name, wanted in relations(field(package, key)):
        if name.startswith("step"):
            continue
        version = wanted.removeprefix("= ") if wanted.startswith("= ") else None
        purl = PackageURL("deb", "debian", name, version, qualifiers)
        constraint = [Property(name="stepctl:version-constraint", value=wanted)] if wanted and not version else []
        components.append(Component(
            type=ComponentType.LIBRARY, name=name, version=version, purl=purl,
            bom_ref=f"{purl}#{wanted}" if constraint else str(purl),
            supplier=OrganizationalEntity(name="Debian"), scope=scope, properties=constraint))
    return components


def bill(packages: list[Path]) -> Bom:
    """Extracts the packages into the working directory."""
    contents = {package: programs(package) for package in packages}
    stamps = {found for paths in contents.values() for found in map(stamp, paths) if found}
    if len(stamps) != 1:
        sys.exit(f"sbom.py: the packages are of {len(stamps)} builds, not of one")
    version, commit, time, architecture, swift = stamps.pop().split(" ")
    digests = {package: hashlib.sha256(package.read_bytes()).hexdigest() for package in packages}
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, " ".join(digests.values())))
    bom.metadata.timestamp = datetime.fromtimestamp(int(time), timezone.utc)
    bom.metadata.component = Component(
        type=ComponentType.APPLICATION, name="stepctl", version=version, bom_ref="stepctl",
        supplier=OrganizationalEntity(name="stepctl maintainers"), licenses=[LicenseExpression("GPL-3.0-or-later")],
        properties=[
            Property(name="stepctl:commit", value=commit), Property(name="stepctl:architecture", value=architecture)])
    parts = []
    for package in packages:
        name, full = field(package, "Package"), field(package, "Version")
        distribution = f"debian-{full.rsplit('~deb', 1)[-1]}"
        purl = PackageURL("deb", "stepctl", name, full, {"arch": architecture, "distro": distribution})
        part = Component(
            type=ComponentType.APPLICATION, name=name, version=full, purl=purl, bom_ref=str(purl),
            description=field(package, "Description").split("\n")[0],
            supplier=OrganizationalEntity(name="stepctl maintainers"), licenses=[LicenseExpression("GPL-3.0-or-later")],
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digests[package])])
        resolved = ROOT / ("Fleet/Package.resolved" if name == "stepfleet" else "Package.resolved")
        # Some of the library's parts are in one program, some in another.
        content = b"".join(path.read_bytes() for path in contents[package])
        sources, binaries = ({"arch": arch, "distro": distribution} for arch in ("source", architecture))
        inside = (
            swift_packages(resolved) + swift_parts(content, swift)
            + debian_packages(package, "Static-Built-Using", ComponentScope.REQUIRED, sources)
            + debian_packages(package, "Depends", ComponentScope.REQUIRED, binaries)
            + debian_packages(package, "Recommends", ComponentScope.OPTIONAL, binaries))
        bom.components.update([part, *inside])
        bom.register_dependency(part, inside)
        parts.append(part)
    bom.register_dependency(bom.metadata.component, parts)
    return bom


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("packages", type=Path, nargs="+")
    options = parser.parse_args()
    output, packages = options.output.absolute(), sorted(package.absolute() for package in options.packages)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        text = JsonV1Dot6(bill(packages)).output_as_string(indent=2) + "\n"
    if mistake := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(f"sbom.py: it would not be valid: {mistake}")
    output.write_text(text)


if __name__ == "__main__":
    main()
