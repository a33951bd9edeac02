"""The page of a counterexample of a cluster: promise, program, time line, frames.

The page is one file without network, as the page of one store (reports/pages/counterexample.py). Tables have all that
the drawing shows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tornpage.reports.pages.counterexample import Shrinking
from tornpage.reports.pages.templating import rendered
from tornpage.reports.plots.figures import Drawing
from tornpage.reports.plots.nodes import NodesLine, plot_nodes
from tornpage.reports.plots.svg import inline_svg
from tornpage.reports.promises import promise_of
from tornpage.reports.results.tables import Caption
from tornpage.reports.shape import Count, Scalar, shaped
from tornpage.reports.text import counted

__all__ = ["ClusterExample", "read_cluster_example", "render_cluster_example"]

_HEIGHT_IN = 3.0


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node after an operation. Offsets are -1 while it is down."""

    node: Count
    role: str
    begin: int
    end: int
    flushed: int
    waiting_puts: Count
    finding: str

    @property
    def is_up(self) -> bool:
        """Whether the node is open."""
        return self.end >= 0

    @property
    def said(self) -> str:
        """The state in words."""
        if not self.is_up:
            return f"{self.role}, down"
        begin = f"begins at {self.begin}, " if self.begin else ""
        waiting = f", {counted(self.waiting_puts, 'put waits', 'puts wait')}" if self.waiting_puts else ""
        return f"{self.role}, {begin}ends at {self.end}, durable to {self.flushed}{waiting}"


@dataclass(frozen=True, slots=True)
class Moment:
    """One operation, its virtual time, its effects, and all nodes after it."""

    number: Count
    text: str
    at_ms: Count
    crashed: int
    effects: tuple[str, ...]
    nodes: tuple[NodeState, ...]


@dataclass(frozen=True, slots=True)
class SentFrame:
    """One frame of a link."""

    link: Count
    sender: Count
    receiver: Count
    what: str
    size_bytes: Count
    arrived_bytes: Count

    @property
    def fate(self) -> str:
        """How much of the frame has arrived, in words."""
        if self.arrived_bytes == self.size_bytes:
            return "arrived"
        return f"{counted(self.arrived_bytes, 'byte')} arrived" if self.arrived_bytes else "did not arrive"


@dataclass(frozen=True, slots=True)
class ClusterExample:
    """Everything the page shows."""

    contract: Count
    sentence: str
    expected: str
    found: str
    bug: str
    settings: dict[str, Scalar]
    token: str
    version: str
    nodes: Count
    operations: Count
    lost_writes: Count
    moments: tuple[Moment, ...]
    frames: tuple[SentFrame, ...]
    frames_left_out: Count
    shrinking: Shrinking | None = None


def read_cluster_example(document: Mapping[str, Any]) -> ClusterExample:
    """Return the account of a counterexample as frozen values.

    Raises ReportError if it has another shape.
    """
    return shaped(ClusterExample, document, path=Path("account"), place="account")


def render_cluster_example(example: ClusterExample) -> str:
    """Return the page."""
    return rendered(
        "cluster.html",
        ("copy.js",),
        it=example,
        promise=promise_of(example.contract),
        timeline=_timeline(example),
        settings=sorted(example.settings.items()),
    )


def _timeline(example: ClusterExample) -> Drawing:
    lines = [
        NodesLine(
            node,
            tuple(moment.nodes[node].end for moment in example.moments),
            tuple(moment.nodes[node].flushed for moment in example.moments),
            tuple(moment.number for moment in example.moments if moment.crashed == node),
        )
        for node in range(example.nodes)
    ]
    title = "The logs of all nodes"
    cells = tuple(
        (f"{moment.number}", f"{moment.at_ms}", *(state.said for state in moment.nodes)) for moment in example.moments
    )
    sentence = (
        "The end of each log after each operation, and the end of its durable part. A cross is a crash, and a gap is "
        "the time in which a node is down. Lines of equal logs are drawn a little apart."
    )
    return Drawing(
        "nodes",
        title,
        inline_svg(lambda ax: plot_nodes(lines, ax=ax), prefix="nodes", title=title, height_in=_HEIGHT_IN),
        sentence,
        ("operation", "time (ms)", *(f"node {node}" for node in range(example.nodes))),
        cells,
        Caption(),
    )
