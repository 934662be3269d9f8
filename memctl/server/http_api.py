"""Every operation over HTTP, and the OpenAPI description made from the same declarations."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from memctl.errors import NotFoundError, UsageError
from memctl.operations.operation_context import OperationContext
from memctl.operations.parameters import parse_arguments
from memctl.operations.registry import Operation, find_operation
from memctl.operations.tool_calls import carry_out
from memctl.server.http_calls import ShapeError, json_body, json_reply, run


def operation_routes() -> Sequence[BaseRoute]:
    """Return the one route that offers every operation."""
    return (Route("/v1/operations/{name}", _operation, methods=["POST"]),)


async def _operation(request: Request) -> Response:
    """Carry out any operation by its name; ``?kb=NAME``, repeatable, says of what."""
    try:
        operation = find_operation(request.path_params["name"])
    except UsageError as error:
        raise NotFoundError(error.message, error.hint) from None
    given = await json_body(request)
    kbs = request.query_params.getlist("kb")
    result = await run(
        request,
        lambda context: run_checked(operation, given, context),
        *kbs,
        effect=operation.effect,
    )
    return json_reply(result)


def run_checked(
    operation: Operation, given: dict[str, object], context: OperationContext
) -> object:
    """Carry out an operation with arguments as JSON has them.

    Raises:
        ShapeError: The arguments do not fit.
        MemctlError: It failed.
    """
    try:
        asked = parse_arguments(operation.parameters, given, operation.name)
    except UsageError as error:
        raise ShapeError(error.message, error.hint) from None
    return carry_out(operation, asked, context)
