"""The API's document: it is one, and the server does as it says, whatever it is asked (schemathesis)."""

import json
import re
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)


DOCUMENT = json.loads((Path(__file__).parents[2] / "Sources/API/openapi.json").read_text())
schema = schemathesis.openapi.from_dict(DOCUMENT)


class Proven(requests.auth.AuthBase):
    """A rider's token, and a proof for each request."""

    def __init__(self, rider):
        self.rider = rider
        # A token lasts for ten minutes, and these tests longer, on a busy machine.
        if time.monotonic() - rider.since > 300:
            rider.access, rider.since = rider.login(rider.email)["access_token"], time.monotonic()

    def __call__(self, request):
        # Where the generated request has a token of its own, that is to be refused.
        path = urlsplit(request.url).path
        request.headers["Authorization"] = f"DPoP {self.rider.access}"
        request.headers["DPoP"] = self.rider.proof(request.method, path, self.rider.access)
        return request


@pytest.fixture(scope="module")
def rider(server):
    from conftest import Rider

    rider = Rider(server)
    rider.since = time.monotonic()
    return rider


def test_the_document_describes_every_route_and_no_other():
    sources = Path(__file__).parents[2] / "Sources"
    # Riders reach neither the operator's routes nor RabbitMQ's.
    others = ("AdminRoutes.swift", "BrokerRoutes.swift")
    files = [file.read_text() for file in sources.rglob("*.swift") if file.name not in others]
    routes = set()
    for text in files:
        text = text.partition("func addAdminRoutes")[0]
        for method, path in re.findall(r'router\.(get|post|patch|delete)\("([^"]+)"\)', text):
            routes.add((method, path.replace(":id", "{id}")))
    assert routes == {(method, path) for path, methods in DOCUMENT["paths"].items() for method in methods}


def inputs(schema: dict, path: str):
    """Each text and list that somebody sends, with its place."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for part in schema.get("allOf", []):
        yield from inputs(part, path)
    for name, member in schema.get("properties", {}).items():
        yield from inputs(member, f"{path}.{name}")
    if schema.get("type") in ("string", "array"):
        yield path, schema
    if "items" in schema:
        yield from inputs(schema["items"], f"{path}[]")


def test_the_document_says_what_inputs_are_checked_for():
    found = []
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                found += inputs(content["schema"], f"{method} {path} ")
    assert len(found) > 30
    for place, schema in found:
        if schema["type"] == "array":
            assert schema["minItems"] == 1 and schema["maxItems"] == 16, place
        elif place.rpartition(".")[2] not in ("scope", "token_type_hint"):
            assert schema.keys() & {"minLength", "pattern", "format", "enum", "const"}, place


@pytest.mark.parametrize("body", [
    {"steps": []}, {"steps": ["left"] * 17}, {"steps": ["LEFT"]},
])
def test_what_the_document_forbids_is_refused(server, rider, body):
    import jsonschema

    whole = {"vehicle": "00000000-0000-4000-8000-000000000000", "to": "2999-01-01T00:00:00Z", **body}
    content = DOCUMENT["paths"]["/v1/bookings"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert not jsonschema.Draft202012Validator(content).is_valid(whole)
    assert rider.asks("POST", "/v1/bookings", json=whole).status_code == 400


@schema.exclude(path_regex="^/(device|v1/account$)").parametrize()
@settings(
    max_examples=12, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck))
def test_the_server_does_as_the_document_says(case, server, rider):
    # What ends the login that the next request needs is tried elsewhere.
    if case.path == "/oauth/revoke":
        case.body = {"token": "none", "client_id": "stepctl"}
    auth = Proven(rider) if case.path.startswith("/v1/") else None
    answer = case.call(base_url=server.url, auth=auth, verify=server.verify, timeout=60)
    case.validate_response(
        answer,
        checks=[
            not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
            response_headers_conformance,
        ])
