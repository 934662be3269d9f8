"""The OpenAPI description of the server, made from the declarations that serve it.

https://spec.openapis.org/oas/v3.1.0
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_type_hints

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from memctl import __version__
from memctl.operations.parameters import JsonObject, parameter_schema, result_schema
from memctl.operations.registry import OPERATIONS, Operation
from memctl.server.http_aliases import AgentUpload, RagUpload
from memctl.server.http_calls import AGENT_HEADER, SESSION_HEADER, USER_HEADER, json_reply
from memctl.server.http_endpoints import ARROW, KB, Endpoint, Listing
from memctl.server.http_routes import QuestionParameters
from memctl.server.http_streams import EventParameters
from memctl.server.http_uploads import ConsolidateParameters, IngestParameters

_PLACE = re.compile(r"{(\w+)(?::\w+)?}")
_HEADER_DESCRIPTIONS: Mapping[str, str] = {
    USER_HEADER: "For which user.",
    AGENT_HEADER: "By which agent.",
    SESSION_HEADER: "In which conversation.",
}
_NAME_SCHEMA: JsonObject = {"type": "string"}
_KB_QUERY: JsonObject = {
    "name": KB,
    "in": "query",
    "description": "The knowledge base; by default the one that is written to.",
    "schema": _NAME_SCHEMA,
}
_ERROR: JsonObject = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "hint", "code"],
            "properties": {
                "message": {"type": "string"},
                "hint": {"type": "string"},
                "code": {"type": "integer"},
            },
        }
    },
}
_FAILURES: Mapping[str, str] = {
    "400": "A value cannot be used.",
    "401": "There is no token, or a wrong one.",
    "403": "The caller may not do that.",
    "404": "It is not there.",
    "409": "Another process is writing, or it does not take part now.",
    "412": "It has changed since that version.",
    "413": "It is too big.",
    "415": "A body of that type is not taken.",
    "422": "It does not have the shape that is asked for.",
    "429": "Too much was asked.",
    "500": "Something is wrong with the server.",
    "502": "A model did not do what was asked.",
    "503": "Not now.",
}


def openapi_routes(endpoints: Sequence[Endpoint]) -> Sequence[BaseRoute]:
    """Return the route of the description."""
    made = openapi(endpoints)

    async def describe(_: Request) -> Response:
        return json_reply(made)

    return (Route("/openapi.json", describe, methods=["GET"]),)


def openapi(endpoints: Iterable[Endpoint]) -> JsonObject:
    """Return the description of all operations and endpoints, and of what has its own routes."""
    paths: dict[str, JsonObject] = {}
    for path, method, described in (
        *map(_operation, OPERATIONS),
        *map(_endpoint, endpoints),
        *_OTHERS,
    ):
        paths.setdefault(path, {})[method] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "memctl",
            "version": __version__,
            "description": "The memory that a person or an AI agent keeps on their own disk.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


_Parameter = tuple[str, str, JsonObject]


def _operation(operation: Operation) -> _Parameter:
    many = {"type": "array", "items": _NAME_SCHEMA}
    kb: JsonObject = {**_KB_QUERY, "description": "A knowledge base; repeatable.", "schema": many}
    operation_object = {
        "operationId": operation.name,
        "summary": operation.description,
        "tags": ["operations"],
        "parameters": [kb, *_headers()],
        "requestBody": _json_body(parameter_schema(operation.parameters)),
        "responses": _responses("200", _json_content(result_schema(operation.result))),
    }
    return f"/v1/operations/{operation.name}", "post", operation_object


def _endpoint(endpoint: Endpoint) -> _Parameter:
    schema = parameter_schema(endpoint.parameters)
    path, places = _path(endpoint.path)
    operation_object: JsonObject = {
        "operationId": _id(endpoint.method, path),
        "summary": endpoint.summary,
        "tags": [_tag(path)],
        "parameters": [*places, *_headers()],
        "responses": _responses(str(endpoint.status), _result_content(endpoint)),
    }
    if endpoint.in_query:
        operation_object["parameters"] += [
            _query(name, each, schema) for name, each in _properties(schema)
        ]
    elif schema["properties"]:
        operation_object["requestBody"] = _json_body(schema)
    if endpoint.takes_kb:
        operation_object["parameters"].append(_KB_QUERY)
    return path, endpoint.method.lower(), operation_object


def _path(template: str) -> tuple[str, list[JsonObject]]:
    """Return a path without the types of its parts, and its parts as parameters."""
    schema: JsonObject = {"type": "string", "minLength": 1}
    places = [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name in _PLACE.findall(template)
    ]
    return _PLACE.sub(r"{\1}", template), places


def _properties(schema: JsonObject) -> Iterable[tuple[str, JsonObject]]:
    properties: Mapping[str, JsonObject] = schema["properties"]
    return properties.items()


def _query(name: str, property_schema: JsonObject, schema: JsonObject) -> JsonObject:
    kind = {key: value for key, value in property_schema.items() if key != "description"}
    if kind.get("type") == "object":
        kind = {"type": "string", "contentMediaType": "application/json"}
    return {
        "name": name,
        "in": "query",
        "required": name in schema["required"],
        "description": property_schema.get("description", ""),
        "schema": kind,
    }


def _headers() -> list[JsonObject]:
    return [
        {"name": name, "in": "header", "description": text, "schema": _NAME_SCHEMA}
        for name, text in _HEADER_DESCRIPTIONS.items()
    ]


def _json_body(schema: JsonObject) -> JsonObject:
    return {"required": bool(schema["required"]), "content": _json_content(_with_null(schema))}


def _with_null(schema: JsonObject) -> JsonObject:
    """Return the schema of parameters; null stands for one that is not given."""
    needed = schema["required"]
    properties = {
        name: each if name in needed else _or_null(each) for name, each in _properties(schema)
    }
    return {**schema, "properties": properties}


def _or_null(schema: JsonObject) -> JsonObject:
    if "type" not in schema:
        return schema
    words = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **words}


def _json_content(schema: JsonObject) -> JsonObject:
    return {"application/json": {"schema": schema}}


def _result_content(endpoint: Endpoint) -> JsonObject:
    """Return what an endpoint gives, as its function is annotated."""
    result = get_type_hints(endpoint.run).get("return")
    if result is Listing:
        return {**_json_content(_page_schema()), **_ARROW_CONTENT}
    return _json_content({})


def _page_schema() -> JsonObject:
    return {
        "type": "object",
        "required": ["items", "total", "next"],
        "properties": {
            "items": {"type": "array", "items": {"type": "object"}},
            "total": {"type": "integer"},
            "next": {"type": ["integer", "null"]},
        },
    }


def _responses(status: str, content: JsonObject) -> JsonObject:
    error = _json_content({"$ref": "#/components/schemas/Error"})
    failures = {code: {"description": text, "content": error} for code, text in _FAILURES.items()}
    return {status: {"description": "Done.", "content": content}, **failures}


def _id(method: str, path: str) -> str:
    words = re.sub(r"\W+", "_", path.removeprefix("/v1")).strip("_")
    return f"{method.lower()}_{words}"


def _tag(path: str) -> str:
    parts = [part for part in path.split("/") if part and not part.startswith("{")]
    return parts[1] if parts[0] == "v1" and len(parts) > 1 else parts[0]


# --- what has a route of its own ------------------------------------------------------------------

_ARROW_CONTENT: Mapping[str, JsonObject] = {ARROW: {"schema": {"type": "string"}}}
_STREAM: JsonObject = {"text/event-stream": {"schema": {"type": "string"}}}
_FILE: JsonObject = {"type": "string", "contentMediaType": "application/octet-stream"}


def _other(
    method: str,
    path: str,
    summary: str,
    *,
    body: type[Any] | None = None,
    takes_file: bool = False,
    content: JsonObject | None = None,
    query: Sequence[JsonObject] = (),
    also: Mapping[str, str] | None = None,
    is_open: bool = False,
) -> _Parameter:
    plain, places = _path(path)
    operation_object: JsonObject = {
        "operationId": _id(method, plain),
        "summary": summary,
        "tags": [_tag(plain)],
        "parameters": [*places, *query, *([] if is_open else _headers())],
        "responses": _responses("200", content or _json_content({})),
    }
    for status, text in (also or {}).items():
        operation_object["responses"][status] = {"description": text, "content": _json_content({})}
    if body is not None:
        schema = parameter_schema(body)
        operation_object["requestBody"] = _json_body(schema)
        if takes_file:
            fields = {**schema["properties"], "file": _FILE}
            form = {"type": "object", "properties": fields}
            operation_object["requestBody"]["content"] |= {
                "multipart/form-data": {"schema": form},
                "application/octet-stream": {"schema": {"type": "string"}},
            }
    if is_open:
        operation_object["security"] = []
    return plain, method.lower(), operation_object


_EVENTS = parameter_schema(EventParameters)
_JOB = {"202": "It became a job."}
_OTHERS: tuple[_Parameter, ...] = (
    _other("GET", "/health", "Tell that the server is there.", is_open=True),
    _other("GET", "/openapi.json", "Describe this interface."),
    _other("POST", "/v1/login", "Make a login link for a browser."),
    _other(
        "POST",
        "/v1/query",
        "Ask a question.",
        body=QuestionParameters,
        content={**_json_content({}), **_STREAM, **_ARROW_CONTENT},
    ),
    _other(
        "POST",
        "/v1/kbs/{kb}/ingest",
        "Remember a text or a file.",
        body=IngestParameters,
        takes_file=True,
        also=_JOB,
    ),
    _other(
        "POST",
        "/v1/kbs/{kb}/consolidate",
        "Draw insights.",
        body=ConsolidateParameters,
        also=_JOB,
    ),
    _other(
        "GET", "/v1/jobs", "List the jobs of this server.", content=_json_content(_page_schema())
    ),
    _other("GET", "/v1/jobs/{job}", "Tell how far a job is."),
    _other("DELETE", "/v1/jobs/{job}", "Forget a job that is over."),
    _other("POST", "/v1/jobs/{job}/retry", "Do a job again that failed."),
    _other("GET", "/v1/jobs/{job}/events", "Send how far a job is.", content=_STREAM),
    _other(
        "GET",
        "/v1/events",
        "Send what happens: files, jobs, writes to pools.",
        query=[_query(name, each, _EVENTS) for name, each in _properties(_EVENTS)],
        content={**_json_content({}), **_STREAM},
    ),
    _other(
        "POST",
        "/agents/{agent_id}/documents",
        "Send a document.",
        body=AgentUpload,
        takes_file=True,
        also=_JOB,
    ),
    _other(
        "POST",
        "/api/v1/ai/rag/documents",
        "Send a document.",
        body=RagUpload,
        takes_file=True,
        query=[{"name": "knowledge_base_id", "in": "query", "schema": _NAME_SCHEMA}],
        also={**_JOB, "201": "Done."},
    ),
)
