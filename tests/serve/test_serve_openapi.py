"""The server keeps to its own OpenAPI document, whatever is generated from it."""

from __future__ import annotations

import json

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from local_server import scorer_of, serving
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.pytest.lazy import get_all_tests
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from halfseen_serve.app import create_app
from halfseen_serve.arrow_body import ARROW
from halfseen_serve.limits import Limits
from halfseen_serve.openapi import REFUSALS
from halfseen_serve.scorer import Scorers

# Not among them: positive_data_acceptance, because JSON Schema cannot say that all columns of a
# table have one length.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]


@schemathesis.serializer(ARROW)
def as_it_is(context, value):
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@pytest.fixture(scope="module")
def schema():
    found = schemathesis.openapi.from_asgi(
        "/openapi.json", create_app(Scorers((scorer_of(),)), Limits(max_rows=20))
    )
    found.config.checks.negative_data_rejection.expected_statuses = [
        str(status) for status in REFUSALS
    ]
    found.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    return found


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def keeps_to_the_document(case):
    case.call_and_validate(checks=CHECKS)


def test_the_server_keeps_to_its_document(schema):
    """`schema.parametrize` would make all cases in every worker that collects this file."""
    tests = get_all_tests(
        schema=schema, test_func=keeps_to_the_document, settings=None, given_kwargs=None
    )
    tried = set()
    for found in tests:
        operation, test = found.ok()
        test()
        tried.add(operation.label)
    assert {label.split()[1] for label in tried} == set(schema.raw_schema["paths"])


def test_the_document_is_valid_and_complete(schema):
    paths = {"/predict", "/schema", "/health", "/ready", "/metrics"}
    assert set(schema.raw_schema["paths"]) == paths
    responses = schema.raw_schema["paths"]["/predict"]["post"]["responses"]
    assert set(responses) == {"200", "400", "408", "413", "415", "422", "429"}
    schema.validate()


@pytest.mark.parametrize("token", [None, "a-token-of-some-length"])
def test_a_refused_token_is_documented_where_there_is_one(token):
    headers = {"Authorization": f"Bearer {token}"}
    with serving(token=token) as url:
        document = httpx.get(f"{url}/openapi.json", headers=headers).json()
    assert ("401" in document["paths"]["/schema"]["get"]["responses"]) == (token is not None)
