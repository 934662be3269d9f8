"""The decorator that turns a function into a command, and the options that commands share."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from memctl.cli.arguments import parse_filters
from memctl.cli.command_context import CommandContext
from memctl.cli.completion import complete_kb
from memctl.cli.rendering.output_formats import Format, check_format
from memctl.cli.rendering.terminal_text import verbatim
from memctl.literals import Mode

if TYPE_CHECKING:
    from memctl.records import Filters

Output = Annotated[
    Format | None,
    typer.Option(
        "-o", "--output", help="The format; by default a table on a terminal, ndjson in a pipe."
    ),
]
KnowledgeBaseOption = Annotated[
    list[str] | None,  # so that a second one is refused, and not taken in place of the first
    typer.Option(
        "-k",
        "--kb",
        metavar="NAME",
        help="The knowledge base; see memctl kb list.",
        autocompletion=complete_kb,
    ),
]
KnowledgeBasesOption = Annotated[
    list[str] | None,
    typer.Option(
        "-k",
        "--kb",
        metavar="NAME",
        help="A knowledge base; repeatable. By default all always-on ones.",
        autocompletion=complete_kb,
    ),
]
ModeOption = Annotated[
    Mode | None, typer.Option("--mode", help="How memories are found; hybrid by default.")
]
NamespacesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace",
        metavar="NAME",
        help="Only this one; repeatable. By default all but private ones.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace", metavar="NAME", help="The namespace to put it into; by default the user's."
    ),
]
SessionOption = Annotated[
    str | None, typer.Option("--session", metavar="ID", help="The conversation it belongs to.")
]
UserOption = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="Whose; by default MEMCTL_USER.")
]
AgentOption = Annotated[
    str | None,
    typer.Option("--agent", "--as", metavar="NAME", help="Who acts; by default MEMCTL_AGENT."),
]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", metavar="DATE", help="Only from that date on: 2026-03-01, 7d, today."),
]
TagsOption = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="Repeatable.")]
TargetOption = Annotated[
    str | None,
    typer.Option("--to", metavar="FILE", help="The file to write; by default standard output."),
]

_Words = list[str] | None
_Word = str | None
_QUIET = Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing but errors.")]
_VERBOSE = Annotated[bool, typer.Option("-v", "--verbose", help="Say more; show tracebacks.")]
_FILTER_OPTIONS: Mapping[str, Any] = {
    "namespaces": NamespacesOption,
    "tags": Annotated[
        _Words,
        typer.Option("--tag", metavar="TAG", help="Only with one of these tags; repeatable."),
    ],
    "types": Annotated[
        _Words, typer.Option("--type", metavar="TYPE", help="Only fact, decision, ...; repeatable.")
    ],
    "levels": Annotated[
        _Words,
        typer.Option("--level", metavar="LEVEL", help="Only evidence, memory or insight."),
    ],
    "since": SinceOption,
    "until": Annotated[
        _Word, typer.Option("--until", metavar="DATE", help="Only before that date.")
    ],
    "as_of": Annotated[
        _Word, typer.Option("--as-of", metavar="DATE", help="What memctl knew on that day.")
    ],
    "session": Annotated[
        _Word, typer.Option("--session", metavar="ID", help="Only this conversation.")
    ],
    "source": Annotated[
        _Word, typer.Option("--source", metavar="GLOB", help="Only sources like '*.pdf'.")
    ],
    "where": Annotated[
        _Word, typer.Option("--where", metavar="SQL", help="Only where 'importance > 0.8'.")
    ],
    "doc_types": Annotated[
        _Words,
        typer.Option(
            "--doc-type", metavar="TYPE", help="Only of pdf, email, ... documents; repeatable."
        ),
    ],
    "meta": Annotated[
        _Words,
        typer.Option("--meta", metavar="KEY=VALUE", help="Only with this metadata; also != >= <."),
    ],
    "metadata": Annotated[
        _Word, typer.Option("--filter", metavar="JSON", help='Like \'{"year": {"$gte": 2024}}\'.')
    ],
    "entities": Annotated[
        _Words,
        typer.Option("--entity", metavar="NAME", help="Only what names this; repeatable."),
    ],
    "topics": Annotated[
        _Words, typer.Option("--topic", metavar="TOPIC", help="Only on this topic; repeatable.")
    ],
    "archived": Annotated[
        bool | None, typer.Option("--archived", help="Also memories that upkeep has put away.")
    ],
}


def flag(name: str, help_text: str) -> Any:
    """Declare a parameter of a command that is False unless its option is given."""
    return typer.Option(False, name, help=help_text)


def group(name: str, help_text: str) -> typer.Typer:
    """Return a group of commands on one noun."""
    return typer.Typer(
        name=name, help=help_text, no_args_is_help=True, add_completion=False, rich_markup_mode=None
    )


def command(
    app: typer.Typer,
    name: str,
    examples: str,
    *,
    without: Sequence[str] = (),
    identity: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command.

    Its first parameter is the ``CommandContext``; ``-q`` and ``-v`` are added to its options.  Its
    help is its docstring's first paragraph, then the examples, then the rest of the docstring.
    Defaults of parameters may be Typer's declarations, so other functions that call it have to
    give every argument.

    A parameter called ``filters`` stands for the options that limit a query or listing, except
    those called ``without``; one called ``page`` for those that say which rows of a listing are
    shown in which order; one called ``kb_settings`` for the settings of a knowledge base that
    have an option, of which it gets those that were given.  With ``identity`` there are --user and
    --agent, for which the ``config`` and ``home`` of the context then stand.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        """Add the function to the app and return it as it was."""
        run = _with_context(function, without, identity)
        app.command(name, help=_help(function, examples))(run)
        return function

    return register


def _is_given(context: typer.Context, name: str) -> bool:
    """Return whether an option before the command was given, if only as nothing."""
    source = context.find_root().get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _with_context(
    function: Callable[..., None], without: Sequence[str], identity: bool
) -> Callable[..., None]:
    @functools.wraps(function)
    def run(context: typer.Context, *, quiet: bool, verbose: bool, **arguments: Any) -> None:
        """Call the function with its context; end quietly if the reader of the pipe has gone."""
        _refuse_huge_numbers(context)
        parameters = inspect.signature(function).parameters
        root_options = context.find_root().params
        command_context = CommandContext(
            {key: root_options[key] for key in ("home", "config") if _is_given(context, key)},
            quiet=quiet or root_options["quiet"],
            verbose=verbose or root_options["verbose"],
            host=context.find_root().obj,
        )
        if identity:
            command_context.act_as(user=arguments.pop("user"), agent=arguments.pop("agent"))
        if "filters" in parameters:
            arguments["filters"] = _filters(arguments)
        if "page" in parameters:
            page = type(parameters["page"].default)
            arguments["page"] = page(**{name: arguments.pop(name) for name in page.options()})
        if "kb_settings" in parameters:
            settings = {name: arguments.pop(name) for name in _kb_setting_options()}
            arguments["kb_settings"] = {k: v for k, v in settings.items() if v is not None}
        check_format(arguments.get("output"))  # before anything is done
        try:
            function(command_context, **arguments)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader has seen enough
            _close_stdout()
            raise typer.Exit from None

    _undeclared.append(functools.partial(_declare, run, function, without, identity))
    return run


_LARGEST = 10**12
"""More than anything can be counted to here; the stores take no more than 64 bits."""
_LONGEST_NUMBER = 20
"""In characters; Python takes none of thousands of digits."""


def _refuse_huge_numbers(context: typer.Context) -> None:
    parameters: Sequence[Any] = context.command.params
    for each in parameters:
        value = context.params.get(each.name)
        if isinstance(value, int) and value > _LARGEST:
            problem = f"it must be less than or equal to {_LARGEST}"
            raise typer.BadParameter(problem, ctx=context, param=each)


_undeclared: list[Callable[[], None]] = []


def declare_options() -> None:
    """Give every registered command its options; the list of commands does without them."""
    while _undeclared:
        _undeclared.pop()()


def read_plain_values(command: Any, help_names: Sequence[str]) -> None:
    """Have values that need no conversion taken as they are, in a command and those below it.

    Typer 0.29 makes a pydantic adapter for every parameter, given or not: that and the import of
    pydantic take 0.1 s of each command.  Whatever is not plain is still left to it.

    Args:
        command: As Typer has made it.
        help_names: The options that show its help.
    """
    try:
        from typer._coercion import RuntimeParam, build_runtime_param
    except ImportError:  # another Typer, which does as it does
        return

    class PlainOrCoerced(RuntimeParam):
        """Makes the adapter for a value that is not plain."""

        def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
            if self.annotation is int and _is_plain_number(value, self.parameter_info):
                return int(value)
            if _is_plain(value, self.annotation):
                return list(value) if isinstance(value, tuple) else value
            coerced = build_runtime_param(param.type_descriptor)
            return coerced.coerce(value, param, ctx)

    context = typer.Context(command, help_option_names=list(help_names))
    for each in command.get_params(context):
        descriptor = each.type_descriptor
        if not descriptor.parameter_info.parser:
            each._runtime_param = PlainOrCoerced(descriptor.parameter_info, descriptor.annotation)
    for below in getattr(command, "commands", {}).values():
        read_plain_values(below, help_names)


def _is_plain(value: Any, annotation: Any) -> bool:
    """Return whether a value is of a parameter's type already."""
    if get_origin(annotation) is list:
        (kind,) = get_args(annotation)
        return all(_is_plain(each, kind) for each in value)
    if get_origin(annotation) is Literal:
        return value in get_args(annotation)
    return annotation in (str, int, float) and type(value) is annotation


def _is_plain_number(value: Any, bounds: Any) -> bool:
    """Return whether a value is a whole number in plain digits, and allowed."""
    if not (isinstance(value, str) and value.isascii() and value.isdecimal()):
        return False
    least, most = bounds.min or 0, _LARGEST if bounds.max is None else bounds.max
    return len(value) < _LONGEST_NUMBER and least <= int(value) <= most


def _filters(arguments: dict[str, Any]) -> Filters:
    names = [name for name in _FILTER_OPTIONS if name in arguments]
    return parse_filters(**{name: arguments.pop(name) for name in names})


def _kb_setting_options() -> dict[str, Any]:
    """Return the options of ``kb create`` and ``kb set``, from the settings' declarations."""
    from memctl.kb_settings import Inbox, KnowledgeBaseSettings
    from memctl.validation import setting_rules, setting_type

    options: dict[str, Any] = {}
    for section in (KnowledgeBaseSettings, Inbox):
        for key, rule in setting_rules(section).items():
            if rule.option:
                bounds = f" ({rule.allowed_range})" if rule.allowed_range else ""
                help_text = f"{rule.help[0].upper()}{rule.help[1:]}{bounds}."
                option = typer.Option(rule.option, metavar=rule.metavar or None, help=help_text)
                options[key] = Annotated[setting_type(section, key) | None, option]
    return options


def _declare(
    run: Callable[..., None],
    function: Callable[..., None],
    without: Sequence[str],
    identity: bool,
) -> None:
    """Give ``run`` the signature that Typer reads: that of ``function`` with shared options."""
    # `Filters` is not imported when a command is only declared.
    hints = get_type_hints(function, localns={"Filters": Any}, include_extras=True)
    parameters = [_option("context", typer.Context, inspect.Parameter.empty)]
    for own in list(inspect.signature(function).parameters.values())[1:]:
        if own.name == "filters":
            offered = [pair for pair in _FILTER_OPTIONS.items() if pair[0] not in without]
            parameters += [_option(name, kind, None) for name, kind in offered]
        elif own.name == "page":
            defaults = own.default
            options = defaults.options()
            parameters += [_option(n, k, getattr(defaults, n)) for n, k in options.items()]
        elif own.name == "kb_settings":
            parameters += [_option(n, kind, None) for n, kind in _kb_setting_options().items()]
        else:
            parameters.append(_option(own.name, hints[own.name], own.default))
    if identity:
        parameters += [_option("user", UserOption, None), _option("agent", AgentOption, None)]
    parameters += [_option("quiet", _QUIET, False), _option("verbose", _VERBOSE, False)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _close_stdout() -> None:
    """Point standard output at nothing, so that the interpreter's own flush does not fail."""
    import os

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())


def _help(function: Callable[..., None], examples: str) -> str:
    first, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\n\n")
    return "\n\n".join(part for part in (first, verbatim(examples), rest) if part)
