"""What riders are told by mail, and the operator's program with them."""

import json

import pytest

from crowd import moment
from programs import wait_until


@pytest.fixture
def rider(stored, new_rider):
    return new_rider(stored)


def test_a_rider_is_told_what_the_operator_has_done_and_the_hook_with_it(stored, rider, parked, tmp_path):
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ncat >>{tmp_path}/told\n")
    hook.chmod(0o755)
    stored.stops()
    stored.changes(hook=str(hook))
    stored.starts()
    booking = rider.books(parked[0], moment(1), moment(3)).json()
    rider.books(parked[1], moment(1), moment(3))
    assert stored.types("booking", "cancel", booking["id"]).returncode == 0
    assert stored.types("vehicle", "remove", "-y", "van").returncode == 0
    assert stored.types("account", "suspend", rider.email).returncode == 0
    # What waits is told within half a minute, or when the server starts.
    stored.stops()
    stored.starts()

    def told() -> list:
        lines = (tmp_path / "told").read_text().splitlines() if (tmp_path / "told").exists() else []
        return [json.loads(line) for line in lines] if len(lines) >= 3 else []

    # Those of one second come in any order.
    first, third, second = sorted(wait_until(told, "the hook has all three"), key=lambda each: each["kind"])
    assert {each["email"] for each in (first, second, third)} == {rider.email}
    assert (first["kind"], first["booking"], first["vehicle"], first["from"]) == (
        "cancelled", booking["id"], parked[0], booking["from"])
    assert (second["kind"], second["vehicle"], third["kind"]) == ("vehicle_removed", parked[1], "suspended")
    assert "booking" not in third
    # Behind the code of the account.
    stored.mail(rider.email, 4)
    mails = [file.read_text() for file in sorted(stored.mails.glob("*.mail")) if f"\nTo: {rider.email}\n" in file.read_text()]
    subjects = [line for mail in mails for line in mail.splitlines() if line.startswith("Subject: ")]
    assert sorted(subjects[-3:]) == [
        "Subject: Your account was suspended", "Subject: Your booking was cancelled", "Subject: Your booking was cancelled"]
    assert any(f"car, {booking['from']} to {booking['to']} (UTC), {booking['id'][:8]}." in mail for mail in mails[-3:])
    # Once.
    stored.stops()
    stored.starts()
    stored.stops()
    assert len((tmp_path / "told").read_text().splitlines()) == 3


def test_a_hook_that_is_no_program_is_said_by_check(stored, parked, tmp_path):
    stored.stops()
    stored.changes(hook=str(tmp_path / "nothing"))
    checked = stored.types("check", stored.folder)
    assert checked.returncode != 0 and f"{tmp_path}/nothing cannot be run: No such file or directory" in checked.stdout
    stored.changes(hook="nothing")
    assert "hook" in stored.types("check", stored.folder).stderr
