"""The file that stepd writes for Prometheus' node exporter, read by Prometheus' own parsers."""

import platform
import shutil
import signal
import stat
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from programs import STEPCTL, STEPD, wait_until


class Metrics:
    def __init__(self, vehicle):
        self.vehicle, self.file = vehicle, vehicle.folder / "stepd.prom"
        with open(vehicle.folder / "stepd.toml", "a") as file:
            file.write('\n[metrics]\nfile = "stepd.prom"\n')

    @property
    def families(self) -> dict:
        return {family.name: family for family in text_string_to_metric_families(self.file.read_text())}

    def value(self, name: str, **labels) -> float | None:
        samples = [sample for family in self.families.values() for sample in family.samples]
        return next((sample.value for sample in samples if (sample.name, sample.labels) == (name, labels)), None)

    def becomes(self, number: float, name: str, **labels):
        wait_until(lambda: self.file.exists() and self.value(name, **labels) == number, f"{name} {labels}: {number}")


@pytest.fixture
def metrics(parked):
    metrics = Metrics(parked)
    parked.starts_all()
    return metrics


def test_they_say_what_happened_and_how_it_stands(metrics):
    vehicle = metrics.vehicle
    metrics.becomes(1, "stepd_broker_connected")
    assert stat.S_IMODE(metrics.file.stat().st_mode) == 0o644
    assert metrics.value("stepd_step_position", step="left", position="close") == 1
    alice, bob = vehicle.rider("alice"), vehicle.rider("bob")
    assert alice.moves("open", "left").status == 0
    assert bob.moves("close", "left").status == 5
    metrics.becomes(1, "stepd_refusals_total", step="left", code="reserved", cause="")
    assert metrics.value("stepd_commands_total", step="left", outcome="began") == 1
    assert metrics.value("stepd_commands_total", step="left", outcome="refused") == 1
    assert metrics.value("stepd_commands_total", step="left", outcome="challenged") >= 2
    assert metrics.value("stepd_motions_total", step="left", target="open", cause="command") == 1
    assert metrics.value("stepd_step_position", step="left", position="open") == 1
    assert metrics.value("stepd_step_phase", step="left", phase="idle") == 1
    assert metrics.value("stepd_broker_connections_total") == 1
    assert metrics.value("stepd_journal_commit_seconds_count") >= 2
    families = metrics.families
    assert families["stepd_commands"].type == "counter" and families["stepd_step_position"].type == "gauge"
    assert families["stepd_journal_commit_seconds"].type == "histogram"
    assert all(family.documentation for family in families.values())
    text = metrics.file.read_text()
    assert "alice" not in text and "bob" not in text
    vehicle.broker.kill()
    metrics.becomes(0, "stepd_broker_connected")
    vehicle.stepd.signal(signal.SIGTERM)
    assert vehicle.stepd.ends().status == 0
    assert not metrics.file.exists(), "what it says is not true any more"


@pytest.mark.parametrize("program", [[STEPD], [STEPCTL], [STEPCTL, "provision"]], ids=["stepd", "stepctl", "operator"])
def test_the_build_is_the_one_of_every_program(metrics, program):
    version, *build = subprocess.check_output([*program, "--version"], text=True).splitlines()
    labels = dict(line.split(" ", 1) for line in build if line.startswith(("commit ", "architecture ")))
    # As Debian names processors.
    assert labels["architecture"] == {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    metrics.becomes(1, "stepd_build_info", version=version, **labels)


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (Debian: prometheus) is not installed")
def test_promtool_finds_nothing_wrong(metrics):
    metrics.becomes(1, "stepd_broker_connected")
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=metrics.file.read_bytes(), capture_output=True
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_a_folder_that_is_missing_is_said_once_and_nothing_else_suffers(parked):
    with open(parked.folder / "stepd.toml", "a") as file:
        file.write('\n[metrics]\nfile = "none/stepd.prom"\n')
    parked.starts_all()
    parked.stepd.says("cannot write the metrics: cannot write")
    assert parked.rider("alice").moves("open", "left").status == 0
    (parked.folder / "none").mkdir()
    wait_until(lambda: (parked.folder / "none/stepd.prom").exists(), "it is tried again")
    assert parked.stepd.stderr.read_text().count("cannot write the metrics") == 1
