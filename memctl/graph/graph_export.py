"""The graph as text that other programs read: GraphML and DOT."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Literal

from memctl.graph.entity_graph import FACT_WEIGHT, Graph
from memctl.graph.graph_views import NO_CONNECTIONS, Connections

GraphFormat = Literal["graphml", "dot"]

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BREAKS = re.compile(r"[\x00-\x1f\x7f]+")
_LISTED = "; "
NAMES = "names"
"""How a memory is connected with a name in it."""


def write_graph(
    graph: Graph,
    format_: GraphFormat,
    sink: BinaryIO,
    connections: Connections = NO_CONNECTIONS,
) -> None:
    """Write a graph in a format, as UTF-8.

    Args:
        graph: Names, and how they hang together.
        format_: The format.
        sink: Where to.
        connections: Memories that are connected; each is a node beside the names in it.
    """
    if format_ == "graphml":
        _write_graphml(graph, connections, sink)
        return
    for line in _dot(graph, connections):
        sink.write(line.encode("utf-8", "replace"))


def _write_graphml(graph: Graph, connections: Connections, sink: BinaryIO) -> None:
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
    for memory in connections.memories:
        made.add_node(memory.id, name=_for_xml(memory.label), type=memory.level)
    for start, end, relation, weight in _connected(graph, connections):
        known = made.get_edge_data(start, end)
        if known is not None:  # two memories can be connected in several ways
            relation = f"{known['relation']}{_LISTED}{relation}"
        made.add_edge(start, end, weight=round(weight, 6), relation=_for_xml(relation))
    nx.write_graphml_xml(made, sink)


def _connected(graph: Graph, connections: Connections) -> Iterator[tuple[str, str, str, float]]:
    """Yield the edges of memories: between them, and to the names in them."""
    for edge in connections.edges:
        yield edge.source_id, edge.target_id, edge.relationship, edge.weight
    for memory in connections.memories:
        for node in memory.nodes:
            yield memory.id, graph.nodes[node].id, NAMES, FACT_WEIGHT


def _for_xml(text: str) -> str:
    """Return text without the characters that XML cannot hold."""
    return _NOT_IN_XML.sub("\ufffd", text)


def _dot(graph: Graph, connections: Connections) -> Iterator[str]:
    yield "graph memories {\n"
    for node in graph.nodes:
        yield f"  {_quoted(node.id)} [label={_quoted(node.name)}, class={_quoted(node.type)}];\n"
    for (one, other), edge in graph.edges.items():
        ends = f"{_quoted(graph.nodes[one].id)} -- {_quoted(graph.nodes[other].id)}"
        weight = max(1, round(10 * edge.weight))
        yield f"  {ends} [weight={weight}, label={_quoted(edge.relations[0])}];\n"
    for memory in connections.memories:
        label = f"label={_quoted(memory.label)}, class={_quoted(memory.level)}"
        yield f"  {_quoted(memory.id)} [{label}, shape=box];\n"
    for start, end, relation, strength in _connected(graph, connections):
        weight = max(1, round(10 * strength))
        ends = f"{_quoted(start)} -- {_quoted(end)}"
        yield f"  {ends} [weight={weight}, label={_quoted(relation)}];\n"
    yield "}\n"


def _quoted(text: str) -> str:
    r"""Return text as a DOT string: quotes escaped, and backslashes, so that ``\l`` is no order."""
    plain = _BREAKS.sub(" ", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
