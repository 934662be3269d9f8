"""memctl config: settings and where each came from."""

from __future__ import annotations

import sys

from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import KnowledgeBaseOption, Output, command, flag, group
from memctl.cli.rendering.output_formats import Column, emit, print_text
from memctl.errors import UsageError

app = group("config", "Show and initialise the settings.")


@command(
    app,
    "show",
    """
    memctl config show
    memctl config show --origin -k work
    """,
)
def show(
    context: CommandContext,
    origin: bool = flag("--origin", "Show which flag, variable or file each value comes from."),
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Show every setting with its value.

    With -k, as that knowledge base sees them: with its own models, endpoint and budget.
    """
    from memctl.config import settings_of, variable_name, with_own_settings, without_password

    config = context.config
    if kb:
        from memctl.kb_settings import load_settings

        if len(set(kb)) > 1:
            raise UsageError("one knowledge base at a time", "give -k once")
        path = context.home.layout(kb[0]).settings
        config = with_own_settings(config, load_settings(path), str(path))
    rows = [
        {
            "key": key,
            "value": without_password(value) if isinstance(value, str) else value,
            "origin": str(config.origins[key]),
            "variable": variable_name(key),
        }
        for key, value in settings_of(config).items()
    ]
    columns = [Column("key", "SETTING"), Column("value", "VALUE", lambda v: _toml(v))]
    if origin:
        columns.append(Column("origin", "FROM"))
    emit(rows, columns, output)


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@command(app, "path", 'memctl config path\n$EDITOR "$(memctl config path)"')
def path(context: CommandContext) -> None:
    """Print where the settings file is, or would be."""
    print_text(str(context.config_path))


@command(app, "init", "memctl config init\nmemctl config init --stdout > config.toml")
def init(
    context: CommandContext,
    stdout: bool = flag("--stdout", "Print it instead of writing it."),
) -> None:
    """Write a settings file with every setting explained.

    All are commented out, so that it changes nothing until you edit it.
    """
    from memctl.config import example_config
    from memctl.files import save_file

    if stdout:
        sys.stdout.write(example_config())
        return
    target = context.config_path
    if target.is_dir():
        hint = "move it away, or name another file with --config or MEMCTL_CONFIG"
        raise UsageError(f"{target} is a folder, and no file of settings", hint)
    if target.exists():
        raise UsageError(f"{target} is there already", "edit it, or move it away first")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    save_file(target, example_config().encode())
    context.say(f"wrote {target}")
