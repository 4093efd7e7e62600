"""A disk that is full: nothing that was confirmed is lost, and the server goes on as soon as there is room."""

import os
import shutil
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from crowd import moment
from programs import Stepctl, Transcript, wait_until
from server import STEPFLEET, Server
from test_bookings import Device, asked, issued, problem, withdrawn


@pytest.fixture
def disk(tmp_path_factory):
    """A small one of its own."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder = tmp_path_factory.mktemp("disk")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m,mode=755", "tmpfs", folder], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_loses_nothing(disk, tmp_path, new_rider):
    stepctl, device = Stepctl(tmp_path, Transcript()), Device(tmp_path / "phone")
    # Its log is on the same disk.
    with closing(Server(disk / "fleet").starts("--verbose")) as server:
        made = stepctl("provision", "vehicle", tmp_path / "car", "--operator", server.folder / "operator")
        assert made.status == 0, made
        assert server.types("vehicle", "add", "car").returncode == 0
        rider = new_rider(server, device.key)
        (car,) = rider.asks("GET", "/v1/vehicles").json()["vehicles"]
        confirmed, hour = [], 0

        def books():
            nonlocal hour
            hour += 1
            answer = rider.books(car["id"], moment(hour), moment(hour + 0.9))
            if answer.status_code == 201:
                confirmed.append(answer.json())
            return answer

        for _ in range(5):
            assert books().status_code == 201
        present = rider.books(car["id"], None, moment(0.9)).json()
        confirmed.append(present)
        assert asked(rider, present, "access", json={"request": device.request}).status_code == 200
        # SQLite's log is empty after a start: else there would be room in it for a while.
        assert server.stops() == 0
        server.starts("--verbose")
        with open(disk / "filler", "wb", buffering=0) as filler:
            with pytest.raises(OSError):
                while True:
                    filler.write(b"0" * 4096)
            refused = next(answer for answer in (books() for _ in range(500)) if answer.status_code != 201)
            problem(refused, 503, "busy")
            assert int(refused.headers["Retry-After"]) > 0 and str(disk) not in refused.text
            # Who may open a step is written down before anybody is told; what is known is still told.
            refused = asked(rider, confirmed[0], "access", json={"request": device.request})
            problem(refused, 503, "busy")
            assert str(disk) not in refused.text
            # What is taken back is not said to be before it is.
            assert asked(rider, present, "end").status_code in (500, 503)
            assert server.types("vehicle", "suspend", "car").returncode == 1
            listed = rider.asks("GET", "/v1/bookings").json()["bookings"]
            assert {booking["id"] for booking in confirmed} == {booking["id"] for booking in listed}
        (disk / "filler").unlink()
        wait_until(lambda: asked(rider, present, "end").status_code == 200, "there is room again")
        assert issued(server) <= withdrawn(server)
        assert server.types("vehicle", "suspend", "car").returncode == 0
        assert server.types("vehicle", "resume", "car").returncode == 0
        wait_until(lambda: books().status_code == 201, "there is room again")
        assert asked(rider, confirmed[0], "access", json={"request": device.request}).status_code == 200
        assert server.stops() == 0
        kept = {row[0] for row in server.sql("SELECT id FROM booking")}
        assert kept == {booking["id"] for booking in confirmed}
        checked = server.types("check", server.folder)
        assert checked.returncode == 0, checked


def test_what_is_left_of_a_restore_that_was_killed_is_no_server(tmp_path):
    server = Server(tmp_path / "fleet")
    assert server.types("backup", tmp_path / "backup").returncode == 0
    restored = tmp_path / "restored"

    def restores(patience: float | None) -> float:
        began = time.monotonic()
        with subprocess.Popen([STEPFLEET, "restore", tmp_path / "backup", restored], stdout=subprocess.DEVNULL) as process:
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                process.kill()
        return time.monotonic() - began

    whole = restores(None)
    for part in range(1, 13):
        shutil.rmtree(restored)
        restores(whole * part / 13)
        if not restored.exists():
            restored.mkdir()
        checked = server.types("check", restored)
        if checked.returncode:
            assert (checked.returncode, "is not the folder of a fleet's server" in checked.stderr) == (66, True), checked
        else:
            assert checked.stdout == f"{restored}: nothing is wrong\n"


def test_a_server_whose_making_was_cut_off_is_none(tmp_path):
    library, source = tmp_path / "cut.so", Path(__file__).parents[3] / "Tests/System/cut.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    cut = {"LD_PRELOAD": str(library), "CUT": "stepfleet.json", "CUT_MODE": "half"}
    for at in ("1", "2"):
        folder = tmp_path / f"fleet{at}"
        command = [STEPFLEET, "init", folder, "--host", "localhost"]
        assert subprocess.run(command, env=os.environ | cut | {"CUT_AT": at}, capture_output=True).returncode < 0
        checked = subprocess.run([STEPFLEET, "check", folder], capture_output=True, text=True)
        assert (checked.returncode, "is not the folder of a fleet's server" in checked.stderr) == (66, True), checked


@pytest.mark.parametrize("left", ["DELETE FROM backup_file", "DROP TABLE backup_file"])
def test_a_backup_that_was_cut_off_is_not_restored(tmp_path, left):
    server = Server(tmp_path / "fleet")
    assert server.types("backup", tmp_path / "backup").returncode == 0
    with closing(sqlite3.connect(tmp_path / "backup", isolation_level=None)) as database:
        database.execute(left)
    restored = server.types("restore", tmp_path / "backup", tmp_path / "restored")
    assert (restored.returncode, "is not a whole backup" in restored.stderr) == (65, True), restored
    assert not (tmp_path / "restored").exists()


def test_a_database_that_is_not_there_is_not_replaced_by_an_empty_one(tmp_path):
    server = Server(tmp_path / "fleet")
    data = server.folder / "data"
    data.rename(tmp_path / "elsewhere")
    for command in (("serve", server.folder), ("check", server.folder), ("backup", tmp_path / "backup")):
        ended = server.types(*command)
        assert (ended.returncode, ended.stderr) == (66, f"stepfleet: error: {data}/fleet.sqlite: no such file\n"), ended
        assert not data.exists() and not (tmp_path / "backup").exists()


def test_a_backup_that_is_not_there_or_cannot_be_read_is_not_called_damaged(tmp_path):
    server = Server(tmp_path / "fleet")
    file, restored = tmp_path / "backup", tmp_path / "restored"
    ended = server.types("restore", file, restored)
    assert (ended.returncode, ended.stderr) == (66, f"stepfleet: error: {file}: no such file\n"), ended
    if os.geteuid() != 0:
        pytest.skip("only root can mount a folder that nobody can write to")
    (tmp_path / "medium").mkdir()
    assert server.types("backup", tmp_path / "medium/backup").returncode == 0
    subprocess.run(["mount", "--bind", tmp_path / "medium", tmp_path / "medium"], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", tmp_path / "medium"], check=True)
        ended = server.types("restore", tmp_path / "medium/backup", restored)
    finally:
        subprocess.run(["umount", "--lazy", tmp_path / "medium"], check=True)
    assert (ended.returncode, "Read-only file system" in ended.stderr) == (74, True), ended


def test_a_check_finds_a_sendmail_that_cannot_be_run(tmp_path):
    server = Server(tmp_path / "fleet")
    assert server.types("check", server.folder).returncode == 0
    server.changes(sendmail=str(tmp_path / "nothing"))
    checked = server.types("check", server.folder)
    assert (checked.returncode, f"{tmp_path}/nothing cannot be run" in checked.stdout) == (1, True), checked


def test_what_is_no_backup_is_not_restored(tmp_path):
    server = Server(tmp_path / "fleet")
    (tmp_path / "text").write_text("no database\n")
    restored = server.types("restore", tmp_path / "text", tmp_path / "restored")
    assert (restored.returncode, "text: it is not a backup" in restored.stderr) == (65, True), restored
    assert (tmp_path / "text").read_text() == "no database\n"
