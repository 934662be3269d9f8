"""The command line: the only package that knows Typer and Rich."""
