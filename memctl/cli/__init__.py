"""The command line: the only room that knows Typer and Rich."""
