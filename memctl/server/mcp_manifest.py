"""The manifest of the tools that are offered by default, as it is shipped.

``python -m memctl.server.mcp_manifest > memctl/server/mcp_manifest.json`` brings it up to date.
"""

from __future__ import annotations

import json
import sys

from memctl.server.mcp_tools import CORE_TOOLS


def manifest() -> str:
    """Return the definitions of the tools as JSON, one a line."""
    tools = (json.dumps(tool.definition(), ensure_ascii=False) for tool in CORE_TOOLS)
    return "[\n" + ",\n".join(tools) + "\n]\n"


if __name__ == "__main__":
    sys.stdout.write(manifest())
