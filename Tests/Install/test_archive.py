"""An archive of `make archive`, of small packages and with a key of its own: what apt takes from it, and refuses."""

import contextlib
import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from built import COMMIT, ROOT, TIME, VERSION, package

NAMES = ["stepctl", "stepctl-operator", "stepd", "stepfleet"]
pytestmark = [
    pytest.mark.skipif(shutil.which("apt-ftparchive") is None, reason="apt-utils is not installed"),
    pytest.mark.skipif(not (ROOT / ".build/sbom").exists(), reason="Tests/prepare.sh archive was not run"),
]


class Keys:
    """gpg's keys of one person. Its folder has a short name, for its agent's socket."""

    def __init__(self, folder):
        self.environment = os.environ | {"GNUPGHOME": folder}

    def gpg(self, *arguments, **options):
        ended = subprocess.run(
            ["gpg", "--batch", "--quiet", *arguments], env=self.environment, check=True, capture_output=True, **options)
        return ended.stdout

    def make(self, name: str) -> None:
        self.gpg("--passphrase", "", "--quick-generate-key", name, "ed25519", "sign", "never")

    def lays_out(self, key: str, packages: Path, output: Path, partial: str = "yes"):
        command = [ROOT / "Packaging/archive.sh", key, packages, output]
        return subprocess.run(command, env=self.environment | {"PARTIAL": partial}, capture_output=True, text=True)


@contextlib.contextmanager
def new_keys():
    with tempfile.TemporaryDirectory(prefix="stepctl-keys.") as folder:
        keys = Keys(folder)
        yield keys
        subprocess.run(["gpgconf", "--kill", "all"], env=keys.environment, check=False)


@pytest.fixture(scope="module")
def keys():
    with new_keys() as keys:
        keys.make("The archive <archive@example>")
        yield keys


@pytest.fixture(scope="module")
def made(tmp_path_factory, keys):
    """One archive, and how it was made: all packages for Debian 12 on amd64, one for Debian 13 on arm64."""
    folder = tmp_path_factory.mktemp("made")
    for name in NAMES:
        package(folder, name, "bookworm", "amd64")
    package(folder, "stepd", "trixie", "arm64")
    ended = keys.lays_out("archive@example", folder / "deb", folder / "archive")
    assert ended.returncode == 0, ended.stderr
    return folder, ended


@pytest.fixture
def archive(made, tmp_path):
    """A copy of it that a test may change."""
    return Path(shutil.copytree(made[0] / "archive", tmp_path / "archive"))


class Apt:
    """apt of a machine that has nothing but an archive's key and its line."""

    def __init__(self, folder: Path, archive: Path, address: str, suite: str, architecture: str):
        for name in ("state/lists/partial", "cache/archives/partial", "parts", "taken"):
            (folder / name).mkdir(parents=True)
        (folder / "status").touch()
        shutil.copy(archive / "stepctl.gpg", folder / "stepctl.gpg")
        (folder / "sources.list").write_text(f"deb [signed-by={folder}/stepctl.gpg] {address} {suite} main\n")
        (folder / "apt.conf").write_text(f"""
            Dir::State "{folder}/state"; Dir::State::status "{folder}/status"; Dir::Cache "{folder}/cache";
            Dir::Etc::SourceList "{folder}/sources.list"; Dir::Etc::SourceParts "{folder}/parts";
            Dir::Etc::Parts "{folder}/parts"; Dir::Etc::TrustedParts "{folder}/parts"; APT::Architecture "{architecture}";
            APT::Architectures {{ "{architecture}"; }}; APT::Sandbox::User ""; Acquire::Languages "none";
            Acquire::http::Proxy "DIRECT"; Acquire::Retries "0";""")
        self.folder = folder

    def __call__(self, *arguments: str):
        return subprocess.run(
            ["apt-get", "-q", *arguments], cwd=self.folder / "taken", capture_output=True, text=True,
            env=os.environ | {"APT_CONFIG": str(self.folder / "apt.conf"), "LC_ALL": "C"})

    def updates(self) -> bool:
        return self("-o", "APT::Update::Error-Mode=any", "update").returncode == 0

    def version(self, name: str) -> str:
        shown = subprocess.check_output(
            ["apt-cache", "show", name], text=True, env=os.environ | {"APT_CONFIG": str(self.folder / "apt.conf")})
        return re.search(r"^Version: (.*)", shown, re.M)[1]


@pytest.fixture
def apt_of(tmp_path):
    """apt's for archives, each over http at the loopback address."""
    servers = []

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    def apt(archive: Path, suite: str = "bookworm", architecture: str = "amd64") -> Apt:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=archive))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        folder = tmp_path / f"apt{len(servers)}"
        return Apt(folder, archive, f"http://127.0.0.1:{server.server_port}", suite, architecture)

    yield apt
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("suite", "architecture", "names"), [("bookworm", "amd64", NAMES), ("trixie", "arm64", ["stepd"])])
def test_apt_takes_the_packages_of_its_release_and_processor(archive, apt_of, suite, architecture, names):
    apt = apt_of(archive, suite, architecture)
    assert apt.updates()
    assert apt("download", *names).returncode == 0
    for name in names:
        taken, = (apt.folder / "taken").glob(f"{name}_*")
        served, = (archive / "pool" / suite).glob(f"{name}_*_{architecture}.deb")
        assert taken.read_bytes() == served.read_bytes()


def test_what_is_not_there_is_said(made):
    missing = [f"archive.sh: bookworm has no {name} for arm64" for name in NAMES]
    missing += [f"archive.sh: trixie has no {name} for amd64" for name in NAMES]
    missing += [f"archive.sh: trixie has no {name} for arm64" for name in NAMES if name != "stepd"]
    assert made[1].stderr.splitlines() == missing


def test_an_archive_that_lacks_packages_has_to_be_asked_for(made, keys, tmp_path):
    ended = keys.lays_out("archive@example", made[0] / "deb", tmp_path / "archive", partial="")
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (
        66, "archive.sh: packages are missing: make them, or say PARTIAL=yes to go without them")
    assert not (tmp_path / "archive").exists() and not list(tmp_path.glob("archive.*"))


def test_everybody_can_read_it_and_nothing_in_it_is_secret(archive, keys):
    for path in [archive, *archive.rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644), path
    packets = keys.gpg("--list-packets", archive / "stepctl.gpg").decode()
    assert packets.count(":public key packet:") == 1 and "secret" not in packets
    assert (archive / "CHANGELOG.md").read_bytes() == (ROOT / "CHANGELOG.md").read_bytes()


def test_the_checksums_are_of_all_files_and_signed(archive, keys):
    named = {line.split("  ", 1)[1] for line in (archive / "SHA256SUMS").read_text().splitlines()}
    files = {str(path.relative_to(archive)) for path in archive.rglob("*") if path.is_file()}
    assert named == files - {"SHA256SUMS", "SHA256SUMS.gpg"}
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=archive, check=True)
    subprocess.run(
        ["gpgv", "--keyring", archive / "stepctl.gpg", archive / "SHA256SUMS.gpg", archive / "SHA256SUMS"], check=True,
        capture_output=True)


# MARK: - Attacks


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_changed_package_is_refused(archive, apt_of):
    apt = apt_of(archive)
    assert apt.updates()
    flip(next((archive / "pool/bookworm").glob("stepd_*")))
    ended = apt("download", "stepd")
    assert ended.returncode != 0 and "Hash Sum mismatch" in ended.stderr
    assert list((apt.folder / "taken").glob("*.deb")) == []


def test_a_changed_index_is_refused(archive, apt_of):
    for path in (archive / "dists/bookworm/main/binary-amd64").rglob("*"):
        if path.is_file():
            flip(path)
    assert not apt_of(archive).updates()


@pytest.mark.parametrize("file", ["InRelease", "Release"])
def test_a_changed_release_is_refused(archive, apt_of, file):
    folder = archive / "dists/bookworm"
    if file == "Release":
        (folder / "InRelease").unlink()
    text = (folder / file).read_text()
    (folder / file).write_text(text.replace("Label: stepctl", "Label: Debian"))
    assert not apt_of(archive).updates()


def test_an_index_without_a_signature_is_refused(archive, apt_of):
    (archive / "dists/bookworm/InRelease").unlink()
    (archive / "dists/bookworm/Release.gpg").unlink()
    assert not apt_of(archive).updates()


def test_an_archive_of_another_key_is_refused(made, archive, apt_of, tmp_path):
    with new_keys() as others:
        others.make("The archive <archive@example>")
        assert others.lays_out("archive@example", made[0] / "deb", tmp_path / "other").returncode == 0
    apt = apt_of(archive)
    shutil.rmtree(archive / "dists")
    shutil.copytree(tmp_path / "other/dists", archive / "dists")
    assert not apt.updates()


def test_an_older_index_does_not_take_the_place_of_a_newer_one(made, archive, apt_of, keys, tmp_path):
    apt = apt_of(archive)
    older = tmp_path / "older"
    shutil.copytree(archive / "dists", older)
    later = tmp_path / "later"
    shutil.copytree(made[0] / "deb", later / "deb")
    (later / "deb/bookworm/amd64" / next((archive / "pool/bookworm").glob("stepd_*")).name).unlink()
    newer = package(later, "stepd", "bookworm", "amd64", TIME + 60)
    # Dates have whole seconds.
    time.sleep(2)
    assert keys.lays_out("archive@example", later / "deb", archive).returncode == 0
    assert apt.updates()
    assert apt.version("stepd") in newer.name
    shutil.rmtree(archive / "dists")
    shutil.copytree(older, archive / "dists")
    # A server that lies about its files' times.
    for path in (archive / "dists").rglob("*"):
        os.utime(path, (TIME * 2, TIME * 2))
    apt.updates()
    assert apt.version("stepd") in newer.name


def test_a_key_is_not_taken_for_another_of_its_name(made, tmp_path):
    """A public key that somebody gave us under the archive's name is not given out with the archive."""
    with new_keys() as strangers, new_keys() as keys:
        keys.make("The archive <archive@example>")
        strangers.make("The archive <archive@example>")
        keys.gpg("--import", input=strangers.gpg("--export"))
        assert keys.lays_out("archive@example", made[0] / "deb", tmp_path / "archive").returncode == 0
        assert keys.gpg("--list-packets", tmp_path / "archive/stepctl.gpg").count(b":public key packet:") == 1


def test_two_keys_of_one_name_are_refused_and_the_archive_stays(made, archive):
    with new_keys() as keys:
        keys.make("The archive <archive@example>")
        keys.make("Another <archive@example>")
        ended = keys.lays_out("archive@example", made[0] / "deb", archive)
    assert (ended.returncode, ended.stderr) == (
        66, 'archive.sh: gpg has 2 secret keys of the name "archive@example", and one is needed\n')
    assert (archive / "SHA256SUMS").read_bytes() == (made[0] / "archive/SHA256SUMS").read_bytes()


def test_a_key_has_to_be_named(made, keys, tmp_path):
    ended = keys.lays_out("", made[0] / "deb", tmp_path / "archive")
    assert (ended.returncode, ended.stderr) == (
        64, "archive.sh: say which key signs: make archive KEY=fingerprint (gpg --list-secret-keys)\n")


def test_an_archive_of_nothing_is_none(keys, tmp_path):
    ended = keys.lays_out("archive@example", tmp_path / "deb", tmp_path / "archive")
    assert ended.returncode == 66 and "there are no packages" in ended.stderr
    assert list(tmp_path.iterdir()) == []


# MARK: - The bill of materials


@pytest.fixture(scope="module")
def bill(made):
    return json.loads((made[0] / "archive/sbom/bookworm-amd64.cdx.json").read_text())


def inside(bill, name: str) -> dict[str, dict]:
    """The components that the package of this name depends on, by their names."""
    components = {component["bom-ref"]: component for component in bill["components"]}
    package = next(component for component in components.values() if component["name"] == name)
    dependency = next(entry for entry in bill["dependencies"] if entry["ref"] == package["bom-ref"])
    return {components[reference]["name"]: components[reference] for reference in dependency["dependsOn"]}


def test_the_bill_says_what_was_built(bill, made):
    built = bill["metadata"]["component"]
    assert (bill["bomFormat"], built["version"]) == ("CycloneDX", VERSION)
    properties = {entry["name"]: entry["value"] for entry in built["properties"]}
    assert properties == {"stepctl:commit": COMMIT, "stepctl:architecture": "amd64"}
    for name in NAMES:
        component = next(entry for entry in bill["components"] if entry["name"] == name)
        file, = (made[0] / "archive/pool/bookworm").glob(f"{name}_*")
        digest = subprocess.check_output(["sha256sum", file], text=True).split()[0]
        assert component["hashes"] == [{"alg": "SHA-256", "content": digest}]


@pytest.mark.parametrize(("name", "resolved"), [("stepd", "Package.resolved"), ("stepfleet", "Fleet/Package.resolved")])
def test_every_swift_package_is_in_the_bill(bill, name, resolved):
    pins = json.loads((ROOT / resolved).read_text())["pins"]
    found = {purl: entry for entry in inside(bill, name).values() if (purl := entry["purl"]).startswith("pkg:swift/")}
    assert len(found) == len(pins) > 0
    for pin in pins:
        place = pin["location"].removeprefix("https://").removesuffix(".git")
        component = found[f"pkg:swift/{place}@{pin['state']['version']}"]
        assert {"name": "stepctl:git-revision", "value": pin["state"]["revision"]} in component["properties"]


def test_what_else_is_linked_statically_is_in_the_bill(bill):
    linked = inside(bill, "stepd")
    assert linked["swift"]["version"] == "6.3.1"
    assert linked["gcc-12"]["version"] == "12.2.0-14"
    assert linked["tomlplusplus"]["purl"].startswith("pkg:deb/debian/tomlplusplus@3.3.0")


def test_the_libraries_that_are_loaded_are_in_the_bill(bill):
    loaded = inside(bill, "stepd")
    assert loaded["libssl3t64"]["properties"] == [{"name": "stepctl:version-constraint", "value": ">= 3.0.0"}]
    assert (loaded["libc6"]["scope"], loaded["bluez"]["scope"]) == ("required", "optional")


def test_the_same_packages_have_the_same_bill(made, tmp_path, keys):
    assert keys.lays_out("archive@example", made[0] / "deb", tmp_path / "again").returncode == 0
    for bill in (made[0] / "archive/sbom").iterdir():
        assert bill.read_bytes() == (tmp_path / "again/sbom" / bill.name).read_bytes()
