"""Requests of all shapes, made from the description: no crash, and nothing that it does not say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from long_form import IS_LONG
from schemathesis.specs.openapi.checks import positive_data_acceptance
from serving import listening

from memctl.config import load_config
from memctl.home import Home
from memctl.server.http_access import load_token
from memctl.server.http_agents import AGENT_ENDPOINTS
from memctl.server.http_aliases import ALIASES
from memctl.server.http_openapi import openapi
from memctl.server.http_pages import PAGES
from memctl.server.http_routes import ENDPOINTS

endpoints = (*ENDPOINTS, *AGENT_ENDPOINTS, *PAGES, *ALIASES)
described = schemathesis.openapi.from_dict(openapi(endpoints))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address and the token of the server of a small home."""
    home = Home(load_config({"home": str(tmp_path_factory.mktemp("fuzz"))}, {}))
    home.create("default")
    with home.open("default") as base:
        base.ingest(text="Ida Holm mended the roof on 4 May 2026.")
    with listening(home) as address:
        yield address.url, load_token(address.token_file)


@described.exclude(path_regex="events$").parametrize()
@settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate] if IS_LONG else [Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_any_request_is_answered_as_described(
    case: schemathesis.Case, served: tuple[str, str]
) -> None:
    url, token = served
    headers = {"Authorization": f"Bearer {token}"}
    case.call_and_validate(
        base_url=url,
        headers=headers,
        timeout=60,
        excluded_checks=[positive_data_acceptance],  # a date in words has no schema
    )
