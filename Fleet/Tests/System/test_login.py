"""Logins and accounts, by HTTP, with clients and attackers that are not ours."""

import pathlib
import re
import statistics
import threading
import time
import uuid
from contextlib import closing

import pytest
import requests
from joserfc.jwk import OKPKey
from requests_oauth2client import DeviceAuthorizationPollingJob, DPoPKey, OAuth2Client

from programs import wait_until
from rider import PASSWORD, Device, account, code_in, create, digest, other
from server import Server


@pytest.fixture
def device(server):
    return Device(server)


@pytest.fixture
def email():
    return f"{uuid.uuid4().hex[:12]}@example.org"


@pytest.fixture
def rider(device, email):
    """An account."""
    account(device, email)
    return email


def problem(answer, status, code):
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert (body["status"], body["code"]) == (status, code), body
    return body


def oauth_error(answer, code, status=400):
    assert answer.status_code == status, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.json()["error"] == code, answer.text


# A foreign client


def foreign_client(server, key):
    session = requests.Session()
    session.trust_env = False  # No other authorities than ours.
    session.verify = server.verify
    metadata = session.get(server.url + "/.well-known/oauth-authorization-server").json()
    assert metadata["issuer"] == server.url
    # RFC 8414 3.2.
    assert [] not in metadata.values()
    client = OAuth2Client(
        token_endpoint=metadata["token_endpoint"],
        device_authorization_endpoint=metadata["device_authorization_endpoint"],
        revocation_endpoint=metadata["revocation_endpoint"],
        client_id="stepctl",
        session=session,
        dpop_bound_access_tokens=True,
        dpop_alg="EdDSA",
    )
    return client, session


def test_a_foreign_client_logs_in_renews_and_logs_out(server, device, rider):
    key = DPoPKey.generate(alg="EdDSA")
    client, session = foreign_client(server, key)
    codes = client.authorize_device()
    assert codes.verification_uri == server.url + "/device"
    assert codes.verification_uri_complete == f"{server.url}/device?user_code={codes.user_code}"
    poll = DeviceAuthorizationPollingJob(client, codes, interval=1, dpop=True, dpop_key=key)
    assert poll() is None
    assert device.decide(codes.user_code, rider).status_code == 200
    poll.interval = codes.interval
    token = poll()
    assert token.token_type == "DPoP" and 590 <= token.expires_in <= 600
    answer = session.get(server.url + "/v1/account", auth=token)
    assert answer.json()["email"] == rider
    assert [login["device"] for login in answer.json()["logins"]] == [key.dpop_jkt]

    renewed = client.refresh_token(token)
    assert renewed.access_token != token.access_token
    assert session.get(server.url + "/v1/account", auth=renewed).status_code == 200
    client.revoke_token(renewed.refresh_token)
    # By hand: this client takes every 401 for a request for a nonce.
    proof = key.proof("GET", server.url + "/v1/account", ath=digest(renewed.access_token))
    headers = {"Authorization": f"DPoP {renewed.access_token}", "DPoP": str(proof)}
    problem(session.get(server.url + "/v1/account", headers=headers), 401, "unauthorized")


# The device grant


def test_a_device_that_asks_too_often_is_told_to_slow_down(device, rider):
    codes = device.codes()
    assert re.fullmatch("[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", codes["user_code"])
    oauth_error(device.redeem(codes["device_code"]), "authorization_pending")
    # Where five seconds pass between two requests, on a busy machine, the second is not too early.
    answers = [device.redeem(codes["device_code"]) for _ in range(4)]
    oauth_error(next(one for one in answers if one.json()["error"] != "authorization_pending"), "slow_down")


def test_who_refuses_a_login_ends_it(device, rider):
    codes = device.codes()
    assert device.decide(codes["user_code"], rider, decision="deny").status_code == 200
    oauth_error(device.redeem(codes["device_code"]), "access_denied")
    oauth_error(device.redeem(codes["device_code"]), "invalid_grant")


def test_a_device_code_gives_tokens_once(device, rider):
    codes = device.codes()
    device.decide(codes["user_code"], rider)
    assert device.redeem(codes["device_code"]).status_code == 200
    oauth_error(device.redeem(codes["device_code"]), "invalid_grant")
    problem(device.decide(codes["user_code"], rider), 400, "wrong_code")


def test_requests_that_are_not_oauth_are_refused(device):
    url = device.server.url
    # RFC 6749 5.2, RFC 9110 15.5.2: in the scheme that the client has used.
    for used, challenge in ((None, "Basic"), ("Basic b3RoZXI6", "Basic"), ("Bearer a", "Bearer"), ('"a" b', "Basic")):
        headers = {"Authorization": used} if used else {}
        refused = device.post("/oauth/token", data={"client_id": "other"}, headers=headers)
        oauth_error(refused, "invalid_client", 401)
        assert refused.headers["WWW-Authenticate"] == f'{challenge} realm="oauth"'
    oauth_error(device.post("/oauth/token", data={"grant_type": "refresh_token"}), "invalid_client", 401)
    oauth_error(device.token(grant_type="password", username="a", password="b"), "unsupported_grant_type")
    oauth_error(device.token(), "invalid_request")
    oauth_error(device.token(grant_type="refresh_token"), "invalid_request")
    oauth_error(
        device.post(
            "/oauth/token", data="client_id=stepctl&client_id=stepctl",
            headers={"Content-Type": "application/x-www-form-urlencoded"}),
        "invalid_request")
    problem(device.post("/oauth/token", json={"client_id": "stepctl"}), 415, "media_type")
    problem(
        requests.post(url + "/oauth/token", data={"client_id": "a" * 100_000}, verify=device.server.verify), 413, "too_large")


# Proofs and tokens


def test_a_proof_is_for_one_request_by_one_key(device, rider):
    tokens = device.login(rider)
    access = tokens["access_token"]
    thief = OKPKey.generate_key("Ed25519")
    path = "/v1/account"
    assert device.ask(access).status_code == 200
    wrong = {
        "another key": device.proof("GET", path, access, key=thief),
        "another method": device.proof("POST", path, access),
        "another path": device.proof("GET", "/v1/account/export", access),
        "another server": device.proof("GET", path, access, htu="https://evil.example/v1/account"),
        "another token": device.proof("GET", path, tokens["refresh_token"]),
        "no token": device.proof("GET", path),
        "an old one": device.proof("GET", path, access, iat=int(time.time()) - 600),
        "one of tomorrow": device.proof("GET", path, access, iat=int(time.time()) + 86_400),
        "no proof": "nonsense",
    }
    for name, proof in wrong.items():
        answer = device.ask(access, proof=proof)
        problem(answer, 401, "unauthorized")
        assert answer.headers["WWW-Authenticate"].startswith('DPoP error="invalid_dpop_proof"'), name
    # The query does not count (RFC 9449 4.2), the path does.
    assert device.ask(access, proof=device.proof("GET", path, access, htu=device.server.url + path + "?a=b")).ok
    problem(device.ask(access, scheme="Bearer"), 401, "unauthorized")
    answer = device.session.get(device.server.url + path)
    problem(answer, 401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == 'DPoP algs="EdDSA Ed25519"'


def test_a_replayed_proof_is_refused(device, rider):
    tokens = device.login(rider)
    access = tokens["access_token"]
    proof = device.proof("GET", "/v1/account", access)
    assert device.ask(access, proof=proof).status_code == 200
    problem(device.ask(access, proof=proof), 401, "unauthorized")
    proof = device.proof("POST", "/oauth/token")
    renewed = device.refresh(tokens["refresh_token"], proof).json()
    oauth_error(device.refresh(renewed["refresh_token"], proof), "invalid_dpop_proof")
    codes = device.codes()
    device.decide(codes["user_code"], rider)
    oauth_error(device.redeem(codes["device_code"], proof), "invalid_dpop_proof")
    # Nothing was used up.
    assert device.refresh(renewed["refresh_token"]).status_code == 200
    assert device.redeem(codes["device_code"]).status_code == 200


def test_two_proofs_in_one_request_are_refused(device, rider):
    access = device.login(rider)["access_token"]
    proofs = [device.proof("GET", "/v1/account", access) for _ in range(2)]
    problem(device.ask(access, proof=", ".join(proofs)), 401, "unauthorized")


def test_a_stolen_refresh_token_is_worth_nothing_without_the_key(server, device, rider):
    tokens = device.login(rider)
    thief = Device(server)
    oauth_error(thief.refresh(tokens["refresh_token"]), "invalid_dpop_proof")
    oauth_error(thief.refresh(tokens["refresh_token"], proof="none"), "invalid_dpop_proof")
    # The owner has lost nothing.
    assert device.refresh(tokens["refresh_token"]).status_code == 200


def test_a_refresh_token_that_is_used_twice_ends_the_login(device, rider):
    first = device.login(rider)
    second = device.refresh(first["refresh_token"]).json()
    assert device.ask(second["access_token"]).status_code == 200
    oauth_error(device.refresh(first["refresh_token"]), "invalid_grant")
    oauth_error(device.refresh(second["refresh_token"]), "invalid_grant")
    problem(device.ask(second["access_token"]), 401, "unauthorized")


def test_a_renewal_whose_answer_was_lost_can_come_again(device, rider):
    first = device.login(rider)
    key = {"Idempotency-Key": str(uuid.uuid4())}
    device.refresh(first["refresh_token"], headers=key)
    again = device.refresh(first["refresh_token"], headers=key)
    assert again.status_code == 200
    assert device.ask(again.json()["access_token"]).status_code == 200


def test_one_renewal_that_is_sent_several_times_at_once_ends_no_login(server, device, rider):
    first = device.login(rider)
    key, answers = {"Idempotency-Key": str(uuid.uuid4())}, []

    def renew():
        copy = Device(server)
        copy.key = device.key
        answers.append(copy.refresh(first["refresh_token"], headers=key))

    threads = [threading.Thread(target=renew) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # What lost too often is told to try again.
    assert {answer.status_code for answer in answers} <= {200, 503}, [answer.text for answer in answers]
    again = device.refresh(first["refresh_token"], headers=key)
    assert again.status_code == 200, again.text
    assert device.ask(again.json()["access_token"]).status_code == 200


def test_a_token_that_is_half_made_up_ends_no_login(device, rider):
    tokens = device.login(rider)
    session = tokens["access_token"][4:26]
    for made_up in (f"sfr_{session}{'A' * 43}", f"sfa_{session}{'A' * 43}"):
        for everywhere in ("false", "true"):
            form = {"client_id": "stepctl", "token": made_up, "everywhere": everywhere}
            assert device.post("/oauth/revoke", data=form).status_code == 200
    assert device.ask(tokens["access_token"]).status_code == 200
    assert device.refresh(tokens["refresh_token"]).status_code == 200


def test_logging_out_everywhere_ends_every_login(server, rider):
    devices = [Device(server) for _ in range(3)]
    tokens = [device.login(rider) for device in devices]
    form = {"client_id": "stepctl", "token": tokens[0]["refresh_token"]}
    assert devices[0].post("/oauth/revoke", data=form).status_code == 200
    problem(devices[0].ask(tokens[0]["access_token"]), 401, "unauthorized")
    assert devices[1].ask(tokens[1]["access_token"]).status_code == 200
    # A token that is worth nothing ends nothing, and tells nothing (RFC 7009 2.2).
    assert devices[0].post("/oauth/revoke", data=form | {"everywhere": "true"}).status_code == 200
    assert devices[1].ask(tokens[1]["access_token"]).status_code == 200
    form = {"client_id": "stepctl", "token": tokens[1]["refresh_token"], "everywhere": "true"}
    assert devices[1].post("/oauth/revoke", data=form).status_code == 200
    problem(devices[2].ask(tokens[2]["access_token"]), 401, "unauthorized")


# The page


def form_of(page):
    return {name: value for name, value in re.findall(r'<input[^>]*name="(\w+)"[^>]*value="([^"]*)"', page.text)}


def test_the_page_works_without_scripts_and_asks_for_a_confirmation(server, device, rider):
    codes = device.codes()
    browser = requests.Session()
    browser.trust_env = False
    browser.verify = server.verify
    page = browser.get(codes["verification_uri_complete"])
    assert "<script" not in page.text
    assert "Does your terminal show this code?" in page.text
    policy = page.headers["Content-Security-Policy"]
    for part in ["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"]:
        assert part in policy
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["Cache-Control"] == "no-store"
    cookie = page.headers["Set-Cookie"]
    assert cookie.startswith("__Host-") and all(word in cookie for word in ["Secure", "HttpOnly", "SameSite=Strict"])
    form = form_of(page)
    assert form["user_code"] == codes["user_code"]
    # Opening the page decides nothing.
    oauth_error(device.redeem(codes["device_code"]), "authorization_pending")
    fields = form | {"email": rider, "password": PASSWORD, "decision": "allow"}
    headers = {
        "Origin": server.url, "Sec-Fetch-Site": "same-origin", "Cookie": cookie.split(";")[0],
        "Referer": codes["verification_uri_complete"],
    }
    answer = requests.post(server.url + "/device", data=fields, headers=headers, verify=server.verify)
    assert answer.status_code == 200 and "Allowed" in answer.text
    time.sleep(codes["interval"])
    assert device.redeem(codes["device_code"]).status_code == 200


def test_a_form_that_another_site_sends_is_refused(server, device, rider):
    codes = device.codes()
    page = requests.get(server.url + "/device", verify=server.verify)
    cookie = page.headers["Set-Cookie"].split(";")[0]
    fields = {"user_code": codes["user_code"], "email": rider, "password": PASSWORD, "decision": "allow"}
    ours = {"Origin": server.url, "Cookie": cookie}
    attacks = [
        ({"Origin": "https://evil.example"}, {}),
        ({"Origin": "null"}, {}),
        ({"Sec-Fetch-Site": "cross-site"}, {}),
        ({"Sec-Fetch-Site": "same-site", "Origin": server.url}, {}),
        ({"Origin": server.url}, {}),
        (ours, {}),
        (ours, {"form_token": "guessed"}),
        ({"Origin": server.url}, {"form_token": form_of(page)["form_token"]}),
        ({"Referer": "https://evil.example/"}, {}),
        ({"Cookie": cookie}, {}),
        (ours | {"Origin": "https://evil.example"}, {"form_token": form_of(page)["form_token"]}),
    ]
    for headers, more in attacks:
        answer = requests.post(server.url + "/device", data=fields | more, headers=headers, verify=server.verify)
        assert answer.status_code == 403 and "open it again" in answer.text, (headers, answer.text)
    oauth_error(device.redeem(codes["device_code"]), "authorization_pending")
    right = {"form_token": form_of(page)["form_token"]}
    assert requests.post(server.url + "/device", data=fields | right, headers=ours, verify=server.verify).status_code == 200


def test_nothing_that_comes_in_an_address_becomes_part_of_the_page(server):
    evil = '"><script>alert(1)</script>'
    page = requests.get(server.url + "/device", params={"user_code": evil}, verify=server.verify)
    assert "<script" not in page.text and "alert(1)" not in page.text
    page = requests.post(
        server.url + "/device", data={"user_code": evil, "email": evil, "password": "x", "decision": "allow"},
        verify=server.verify)
    assert page.status_code == 400 and "<script" not in page.text


# Accounts


def test_an_account_from_making_to_deleting(server, device, email):
    code = create(device, email)
    problem(device.post("/v1/accounts/confirm", json={"email": email, "code": other(code)}), 400, "wrong_code")
    assert device.post("/v1/accounts/confirm", json={"email": email, "code": code}).status_code == 204
    tokens = device.login(email)
    access = tokens["access_token"]
    whoami = device.ask(access).json()
    assert (whoami["email"], whoami["role"]) == (email, "rider")
    exported = device.ask(access, "/v1/account/export").json()
    assert exported["id"] == whoami["id"] and "password" not in exported
    change = {"current": "wrong password", "password": "another horse battery"}
    problem(device.ask(access, "/v1/account/password", "POST", json=change), 403, "wrong_login")
    change["current"] = PASSWORD
    assert device.ask(access, "/v1/account/password", "POST", json=change).status_code == 204
    assert device.ask(access, method="DELETE").status_code == 204
    problem(device.ask(access), 401, "unauthorized")
    problem(device.decide(device.codes()["user_code"], email, "another horse battery"), 403, "wrong_login")


def test_a_forgotten_password_is_set_by_a_mailed_code(server, device, rider):
    access = device.login(rider)["access_token"]
    assert device.post("/v1/accounts/password", json={"email": rider}).status_code == 202
    code = code_in(server.mail(rider, 2))
    new = {"email": rider, "code": code, "password": "another horse battery"}
    problem(device.post("/v1/accounts/password", json=new | {"code": other(code)}), 400, "wrong_code")
    assert device.post("/v1/accounts/password", json=new).status_code == 204
    problem(device.post("/v1/accounts/password", json=new), 400, "wrong_code")
    problem(device.ask(access), 401, "unauthorized")
    problem(device.decide(device.codes()["user_code"], rider), 403, "wrong_login")
    assert device.decide(device.codes()["user_code"], rider, "another horse battery").status_code == 200


def test_an_address_that_has_an_account_cannot_be_told_from_one_that_has_not(server, device, rider):
    terms = device.session.get(server.url + "/v1/terms").json()["version"]
    nobody = f"{uuid.uuid4().hex[:12]}@example.org"

    def answers(address):
        code = device.codes()["user_code"]
        return [
            (answer.status_code, re.sub(r"[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", "", answer.text))
            for answer in [
                device.post("/v1/accounts", json={"email": address, "password": PASSWORD, "terms": terms}),
                device.post("/v1/accounts/password", json={"email": address}),
                device.post("/v1/accounts/confirm", json={"email": address, "code": "000000"}),
                device.post(
                    "/v1/accounts/password", json={"email": address, "code": "000000", "password": PASSWORD}),
                device.decide(code, address, "not the password"),
            ]
        ]

    assert answers(rider) == answers(nobody)


def test_a_password_is_hashed_for_an_unknown_address_too(device, rider):
    def time_of(address):
        code = device.codes()["user_code"]
        begin = time.perf_counter()
        problem(device.decide(code, address, "not the password"), 403, "wrong_login")
        return time.perf_counter() - begin

    # Five guesses are free for each; in turns, so that both meet the same machine.
    known, unknown = zip(*[(time_of(rider), time_of("nobody-at-all@example.org")) for _ in range(5)])
    # Without the hash an answer takes a hundredth of this.
    assert statistics.median(unknown) > statistics.median(known) / 3


def test_guesses_of_a_password_are_limited(device, rider):
    code = device.codes()["user_code"]
    for _ in range(5):
        problem(device.decide(code, rider, "not the password"), 403, "wrong_login")
    answer = device.decide(code, rider)
    problem(answer, 429, "too_many")
    assert 0 < int(answer.headers["Retry-After"]) <= 60


def test_guesses_of_a_mailed_code_are_limited(device, email):
    code = create(device, email)
    for _ in range(5):
        problem(device.post("/v1/accounts/confirm", json={"email": email, "code": other(code)}), 400, "wrong_code")
    problem(device.post("/v1/accounts/confirm", json={"email": email, "code": code}), 400, "wrong_code")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"email": "nobody"}, "email"),
        ({"email": "a@b\r\nBcc: everybody@example.org"}, "email"),
        ({"password": "short"}, "password"),
        ({"password": "aaaaaaaaaaaa"}, "password"),
        ({"terms": "older"}, "terms"),
        ({"email": None}, "malformed"),
        ({"password": 12345678}, "malformed"),
        ({"more": 1}, "malformed"),
    ],
)
def test_an_account_that_cannot_be_made_says_why(server, device, email, change, code):
    terms = device.session.get(server.url + "/v1/terms").json()["version"]
    body = {"email": email, "password": PASSWORD, "terms": terms} | change
    problem(device.post("/v1/accounts", json=body), 400, code)


def test_a_name_that_is_there_twice_is_refused(server, device, email):
    body = f'{{"email": "{email}", "code": "000000", "email": "other@example.org"}}'
    answer = device.post("/v1/accounts/confirm", data=body, headers={"Content-Type": "application/json"})
    problem(answer, 400, "malformed")


def test_nothing_secret_is_in_the_log(server, device, rider):
    tokens = device.login(rider)
    device.refresh(tokens["refresh_token"])
    device.decide(device.codes()["user_code"], rider, "not the password")
    log = server.log()
    for secret in [tokens["access_token"], tokens["refresh_token"], PASSWORD, "not the password", rider]:
        assert secret not in log


def test_a_code_that_could_not_be_mailed_is_not_in_the_log(tmp_path, email):
    with closing(Server(tmp_path / "fleet")) as server:
        # It keeps the message, and fails.
        (tmp_path / "fails").write_text(f"#!/bin/sh\ncat >{tmp_path}/new\nmv {tmp_path}/new {tmp_path}/mail\nexit 1\n")
        (tmp_path / "fails").chmod(0o755)
        server.changes(sendmail=str(tmp_path / "fails"))
        device = Device(server.starts())
        terms = device.session.get(server.url + "/v1/terms").json()["version"]
        asked = device.post("/v1/accounts", json={"email": email, "password": PASSWORD, "terms": terms})
        assert asked.status_code == 202, asked.text
        wait_until(lambda: '"a program has not taken a message"' in server.log(), "the line")
        code = code_in((tmp_path / "mail").read_text())
        assert code not in server.log() and email not in server.log()


def test_every_attack_that_the_page_of_the_login_lists_has_its_test():
    fleet = pathlib.Path(__file__).parents[2]
    page = (fleet / "Sources/Login/LOGIN.md").read_text()
    for name in re.findall(r"`(test_\w+)`", page):
        assert name in globals(), name
    swift = "".join(file.read_text() for file in (fleet / "Tests/LoginTests").glob("*.swift"))
    for suite, function in re.findall(r"`(\w+Tests)(?:\.(\w+))?`", page) + re.findall(r"`(AccountTests)\.(\w+)`", page):
        assert f"struct {suite}" in swift, suite
        assert not function or f"func {function}(" in swift, function
