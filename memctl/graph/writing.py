"""The graph as text that other programs read: GraphML and DOT."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Literal

from memctl.graph.graph import Graph

GraphFormat = Literal["graphml", "dot"]

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BREAKS = re.compile(r"[\x00-\x1f\x7f]+")
_LISTED = "; "


def write_graph(graph: Graph, format_: GraphFormat, sink: BinaryIO) -> None:
    """Write a graph in a format, as UTF-8."""
    if format_ == "graphml":
        _write_graphml(graph, sink)
        return
    for line in _dot(graph):
        sink.write(line.encode("utf-8", "replace"))


def _write_graphml(graph: Graph, sink: BinaryIO) -> None:
    import networkx as nx

    made: nx.Graph[str] = nx.Graph()
    for node in graph.nodes:
        made.add_node(
            node.id,
            name=_for_xml(node.name),
            type=_for_xml(node.type),
            aliases=_for_xml(_LISTED.join(node.aliases)),
            mentions=node.mentions,
        )
    for (one, other), edge in graph.edges.items():
        made.add_edge(
            graph.nodes[one].id,
            graph.nodes[other].id,
            weight=round(edge.weight, 6),
            relation=_for_xml(_LISTED.join(edge.relations)),
            memories=_for_xml(_LISTED.join(edge.memory_ids)),
        )
    for number, members in enumerate(graph.communities, start=1):
        for member in members:
            made.nodes[graph.nodes[member].id]["community"] = number
    nx.write_graphml_xml(made, sink)


def _for_xml(text: str) -> str:
    """Return text without the characters that XML cannot hold."""
    return _NOT_IN_XML.sub("\ufffd", text)


def _dot(graph: Graph) -> Iterator[str]:
    yield "graph memories {\n"
    for node in graph.nodes:
        yield f"  {_quoted(node.id)} [label={_quoted(node.name)}, class={_quoted(node.type)}];\n"
    for (one, other), edge in graph.edges.items():
        ends = f"{_quoted(graph.nodes[one].id)} -- {_quoted(graph.nodes[other].id)}"
        weight = max(1, round(10 * edge.weight))
        yield f"  {ends} [weight={weight}, label={_quoted(edge.relations[0])}];\n"
    yield "}\n"


def _quoted(text: str) -> str:
    r"""Return text as a DOT string: quotes escaped, and backslashes, so that ``\l`` is no order."""
    plain = _BREAKS.sub(" ", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
