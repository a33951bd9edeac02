"""Crash images of real disks: the rulings about an image, and what two stores kept of it.

Rows, their summary and their drawing. The tables are `rulings.json` and `crash_images.json` of a run directory.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from tornpage.reports.palette import FATES, INK, MUTED, PAPER, SERIES
from tornpage.reports.shape import Count
from tornpage.reports.text import shortened

__all__ = [
    "ROW_IN",
    "CrashImageRow",
    "ImageBars",
    "RulingRow",
    "SideBar",
    "plot_crash_images",
    "summarise_crash_images",
]

ROW_IN = 0.27
"""Height of an image in the drawing (inches)."""

_NAME_LENGTH = 30
_BAR = 0.36
_OTHER, _OURS = SERIES[0], SERIES[2]
_LOST, _ASIDE = FATES["lost"], FATES["older"]


@dataclass(frozen=True, slots=True)
class RulingRow:
    """The ruling about one image under one number of the contract."""

    number: Count
    name: str
    verdict: str
    sentence: str
    file: str | None = None
    offset: int | None = None
    expected: str = ""
    found: str = ""


@dataclass(frozen=True, slots=True)
class CrashImageRow:
    """One image: acknowledged records (`told`), and the records that each store kept.

    None is a store that did not start. `broken` and `rocketmq_broken` are numbers of the contract.
    """

    image: str
    told: Count
    rocketmq_kept: Count | None
    rocketmq_broken: tuple[int, ...]
    kept: Count
    in_quarantine: Count
    mode: str
    broken: tuple[int, ...]
    not_judged: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SideBar:
    """One store and one image: percentages of acknowledged records, and the broken numbers."""

    kept: float
    aside: float
    lost: float
    starts: bool
    broken: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ImageBars:
    """One image: RocketMQ above, tornpage below."""

    image: str
    rocketmq: SideBar
    ours: SideBar


def summarise_crash_images(rows: Sequence[CrashImageRow]) -> tuple[ImageBars, ...]:
    """Return the bars of each image, in the order of the rows.

    A record that is neither kept nor in quarantine is lost.
    """
    return tuple(
        ImageBars(
            row.image,
            _bar(row.told, row.rocketmq_kept, 0, row.rocketmq_broken),
            _bar(row.told, None if row.mode == "does not open" else row.kept, row.in_quarantine, row.broken),
        )
        for row in rows
    )


def _bar(told: int, kept: int | None, aside: int, broken: tuple[int, ...]) -> SideBar:
    share = 100 / max(told, 1)
    there = min(kept or 0, told)
    copied = min(aside, told - there)
    return SideBar(share * there, share * copied, share * (told - there - copied), kept is not None, broken)


def plot_crash_images(images: Sequence[ImageBars], *, ax: Axes) -> Axes:
    """Draw two bars per image: records kept, in quarantine, lost; broken numbers beside them.

    The bars are percentages of the acknowledged records.
    """
    for place, image in enumerate(images):
        for side, bar, colour in ((-0.5, image.rocketmq, _OTHER), (0.5, image.ours, _OURS)):
            y = place + side * (_BAR + 0.04)
            _draw(ax, y, bar, colour.light)
            if bar.broken:
                numbers = ", ".join(map(str, bar.broken))
                ax.text(102, y, numbers, fontsize=6.5, color=INK.light, va="center", ha="left")
    ax.set_yticks(range(len(images)), [shortened(image.image, length=_NAME_LENGTH) for image in images])
    ax.set(xlim=(0, 100), ylim=(max(len(images), 1) - 0.4, -0.6), xlabel="acknowledged records (%)")
    ax.text(102, -0.75, "broken\nnumbers", fontsize=6.5, color=MUTED.light, va="bottom", ha="left")
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0, labelsize=7)
    handles = [
        Patch(facecolor=_OTHER.light, edgecolor=_OTHER.light, label="kept by RocketMQ (upper bar)"),
        Patch(facecolor=_OURS.light, edgecolor=_OURS.light, label="kept by tornpage (lower bar)"),
        Patch(facecolor=PAPER.light, edgecolor=_LOST.colour, hatch=_LOST.hatch, label="lost"),
        Patch(facecolor=PAPER.light, edgecolor=_ASIDE.colour, hatch=_ASIDE.hatch, label="copied to quarantine"),
    ]
    ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(-0.55, 1.03), ncols=2, frameon=False, borderaxespad=0)
    return ax


def _draw(ax: Axes, y: float, bar: SideBar, colour: str) -> None:
    if not bar.starts:
        ax.text(1, y, "does not start", fontsize=6.5, color=INK.light, va="center", ha="left")
        return
    ax.barh(y, bar.kept, height=_BAR, color=colour, edgecolor=colour, linewidth=0.8)
    left = bar.kept
    for width, style in ((bar.aside, _ASIDE), (bar.lost, _LOST)):
        if width:
            ax.barh(
                y, width, height=_BAR, left=left, facecolor=PAPER.light, edgecolor=style.colour, hatch=style.hatch,
                linewidth=0.8,
            )  # fmt: skip
            left += width
