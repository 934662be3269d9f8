"""The command line in this process, as for the other commands."""

from __future__ import annotations

from cli.conftest import memctl

__all__ = ["memctl"]
