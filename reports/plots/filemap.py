"""Files of a store drawn to scale, a line per file: records, zeros, damage, findings.

Files of one kind share one scale. Kinds of runs differ in height as well as in colour, so that they can be
distinguished without colour.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tornpage.reports.shape import Count

__all__ = ["LENGTH", "RUN_STYLES", "FileMap", "MapBar", "MapLine", "MapRun", "lines_of"]

LENGTH = 1000
"""Length of the longest file of a kind (units of the drawing)."""
_LEAST = 2.0
"""The least length of a run that is not empty, so that one bad byte is visible."""

RUN_STYLES = {
    "record": ("blue", 3, 10, "records"),
    "unit": ("blue", 3, 10, "units in use"),
    "entries": ("blue", 3, 10, "entries"),
    "header": ("ochre", 3, 10, "header"),
    "slots": ("green", 5, 6, "slots"),
    "blank": ("stone", 6, 4, "unused up to the end of the file"),
    "zeros": ("stone", 7, 2, "zeros: not written yet"),
    "empty": ("stone", 7, 2, "empty units"),
    "free": ("stone", 7, 2, "free"),
    "prefill": ("green", 5, 6, "pre-filled units without a message"),
    "unreadable": ("red", 0, 16, "no record can be read"),
    "unknown": ("purple", 0, 16, "not known"),
    "more": ("slate", 5, 6, "more, not told apart"),
}
"""Per kind: colour, upper edge and height in a line of height 16, and meaning."""


@dataclass(frozen=True, slots=True)
class MapRun:
    """Bytes of one kind in a file, with `items` records, units or entries."""

    what: str
    at: Count
    size: Count
    items: Count


@dataclass(frozen=True, slots=True)
class FileMap:
    """A file: `base` is the offset of its first byte in the log or queue."""

    file: str
    kind: str
    size: Count
    base: Count
    runs: tuple[MapRun, ...]


@dataclass(frozen=True, slots=True)
class MapBar:
    """A run in a drawing: its place, its style and its text."""

    x: str
    y: int
    width: str
    height: int
    colour: str
    said: str


@dataclass(frozen=True, slots=True)
class MapLine:
    """A line of the drawing: `length` of LENGTH; `marks` are the places of findings."""

    file: str
    kind: str
    size: int
    length: str
    bars: tuple[MapBar, ...]
    marks: tuple[str, ...]
    said: str


def lines_of(files: Sequence[FileMap], marks: Iterable[tuple[str, int]]) -> tuple[MapLine, ...]:
    """Return the files as lines; `marks` are (file, position) of findings."""
    longest: dict[str, int] = {}
    for file in files:
        longest[file.kind] = max(longest.get(file.kind, 1), file.size)
    marked: dict[str, list[int]] = {}
    for name, position in marks:
        marked.setdefault(name, []).append(position)
    return tuple(_line(file, longest[file.kind], sorted(set(marked.get(file.file, ())))) for file in files)


def _line(file: FileMap, longest: int, marks: Sequence[int]) -> MapLine:
    scale = LENGTH / longest
    bars = tuple(_bar(run, scale) for run in file.runs if run.size)
    return MapLine(
        file.file,
        file.kind,
        file.size,
        _units(max(scale * file.size, _LEAST)),
        bars,
        tuple(_units(scale * min(position, file.size)) for position in marks),
        "; ".join(bar.said for bar in bars[:12]) or "nothing could be read",
    )


def _bar(run: MapRun, scale: float) -> MapBar:
    colour, y, height, meaning = RUN_STYLES.get(run.what, ("purple", 0, 16, run.what))
    items = f"{run.items:,} " if run.items else ""
    said = f"{items}{meaning}, {run.size:,} bytes at {run.at:,}"
    return MapBar(_units(scale * run.at), y, _units(max(scale * run.size, _LEAST)), height, colour, said)


def _units(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
