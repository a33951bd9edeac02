"""The lanes of a counterexample: operations, writes and barriers along the journal."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from tornpage.reports.palette import GRID, INK, MUTED, SERIES, Colour, Line
from tornpage.reports.shape import Count
from tornpage.reports.text import shortened

__all__ = ["LANE_IN", "LaneMark", "LaneOperation", "Lanes", "LanesDrawn", "plot_lanes", "summarise_lanes"]

LANE_IN = 0.24
"""Height of a lane (inches)."""

OPERATIONS_MAX = 14
FILES_MAX = 14
ENTRIES_MAX = 160
_NAME_LENGTH = 34
_WRITE, _CRASH, _SYNC, _NAME, _DIRECTORY = SERIES[0], SERIES[1], SERIES[2], SERIES[3], SERIES[5]
_MARKERS = {"write": ("o", _WRITE), "size": ("s", _NAME), "name": ("D", _NAME), "failed sync": ("X", _CRASH)}
_BARRIERS: dict[str, tuple[str, Colour, Line]] = {"sync": ("|", _SYNC, "-"), "directory sync": ("|", _DIRECTORY, ":")}


@dataclass(frozen=True, slots=True)
class LaneOperation:
    """An operation, its journal entries `first` to `last` (-1: none), and its answer."""

    text: str
    first: int
    last: int
    answer: str


@dataclass(frozen=True, slots=True)
class LaneMark:
    """Journal entry `at`: an event of a file, or a barrier."""

    at: Count
    kind: str
    file: str
    what: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """Everything since the previous crash fault.

    `opened` and `crash` are the journal positions at which the open returned, and of the crash (-1: none).
    """

    operations: tuple[LaneOperation, ...]
    entries: Count
    opened: Count
    crash: int
    crash_operation: int
    is_kill: bool
    back: Count
    marks: tuple[LaneMark, ...]


@dataclass(frozen=True, slots=True)
class LanesDrawn:
    """The drawn part: the last operations and entries, and the files with most entries."""

    operations: tuple[tuple[int, LaneOperation], ...]
    files: tuple[str, ...]
    marks: tuple[LaneMark, ...]
    begin: int
    end: int
    opened: int
    crash: int
    left_out: bool

    @property
    def lanes(self) -> int:
        """The number of lanes."""
        return len(self.operations) + len(self.files)


def summarise_lanes(lanes: Lanes) -> LanesDrawn:
    """Return the part of the lanes that is drawn."""
    end = lanes.crash if lanes.crash >= 0 else lanes.entries
    begin = max(0, end - ENTRIES_MAX)
    seen = [(n, o) for n, o in enumerate(lanes.operations, 1) if o.first >= 0 and o.last >= begin]
    marks = tuple(mark for mark in lanes.marks if begin <= mark.at < end)
    files = list(dict.fromkeys(mark.file for mark in marks if mark.file))
    told = sorted(files, key=lambda file: ("log/" not in file, -sum(mark.file == file for mark in marks)))[:FILES_MAX]
    return LanesDrawn(
        tuple(seen[-OPERATIONS_MAX:]),
        tuple(file for file in files if file in told),
        marks,
        begin,
        end,
        lanes.opened,
        lanes.crash,
        begin > 0 or len(seen) > OPERATIONS_MAX or len(files) > FILES_MAX,
    )


def plot_lanes(drawn: LanesDrawn, *, ax: Axes) -> Axes:
    """Draw operations as bars, writes, sizes and names as marks, syncs as vertical lines.

    The crash is a thick line.
    """
    labels = [f"{number}. {shortened(o.text, length=_NAME_LENGTH)}" for number, o in drawn.operations]
    labels += [shortened(file.removeprefix("/store/"), length=_NAME_LENGTH) for file in drawn.files]
    for lane, (_, operation) in enumerate(drawn.operations):
        first = max(operation.first, drawn.begin)
        ax.barh(lane, max(operation.last - first, 0.4), left=first, height=0.5, color=MUTED.light)
    if drawn.begin < drawn.opened:
        ax.axvspan(drawn.begin - 1, drawn.opened, color=GRID.light, alpha=0.4, linewidth=0)
        ax.text(drawn.begin - 0.5, -0.45, "the store opens", fontsize=6.5, color=INK.light, va="center")
    place = {file: len(drawn.operations) + lane for lane, file in enumerate(drawn.files)}
    top, bottom = -0.7, drawn.lanes - 0.3
    for mark in drawn.marks:
        if mark.kind in _BARRIERS:
            _, colour, line = _BARRIERS[mark.kind]
            ax.plot([mark.at, mark.at], [top, bottom], color=colour.light, linestyle=line, linewidth=0.7)
        if mark.file in place:
            marker, colour = _MARKERS.get(mark.kind, ("|", _BARRIERS.get(mark.kind, ("|", _SYNC, "-"))[1]))
            ax.plot([mark.at], [place[mark.file]], marker=marker, color=colour.light, markersize=4, linestyle="")
    if drawn.crash >= 0:
        ax.plot([drawn.crash, drawn.crash], [top, bottom], color=_CRASH.light, linewidth=2.5)
    ax.set_yticks(range(drawn.lanes), labels)
    ax.tick_params(axis="y", length=0, labelsize=7)
    ax.grid(visible=False, axis="y")
    ax.set(xlim=(drawn.begin - 1, drawn.end + 1), ylim=(bottom, top), xlabel="entry of the disk's journal")
    ax.figure.legend(handles=_handles(drawn), loc="outside upper left", ncols=4, frameon=False)
    ax.set_axisbelow(True)
    return ax


def _handles(drawn: LanesDrawn) -> Sequence[Line2D]:
    kinds = {mark.kind for mark in drawn.marks}
    found = [
        Line2D([], [], marker=marker, color=colour.light, linestyle="", label=kind)
        for kind, (marker, colour) in _MARKERS.items()
        if kind in kinds
    ]
    found += [
        Line2D([], [], color=colour.light, linestyle=line, label=kind)
        for kind, (_, colour, line) in _BARRIERS.items()
        if kind in kinds
    ]
    if drawn.crash >= 0:
        found.append(Line2D([], [], color=_CRASH.light, linewidth=2.5, label="crash"))
    return found or [Line2D([], [], color=INK.light, label="nothing was written")]
