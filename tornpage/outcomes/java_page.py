"""Compare rows of docs/against-java.md with live runs of RocketMQ, or write them.

The page has two tables. Cells of the first are "RocketMQ, tornpage". A live run gives RocketMQ's half; the other half
stays, since a test of the store compares it. Of the second table a run gives the whole row: RocketMQ's columns live,
and those of tornpage from the judges.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, refuse
from tornpage.outcomes.judging import golden_text
from tornpage.peers.errors import PeerError, PeerUnavailable
from tornpage.peers.golden_figures import LiveRow, live_row
from tornpage.peers.rocketmq.process import Limits, Process
from tornpage.properties.decode.opening import InspectError
from tornpage.properties.judge.golden import GoldenImage, golden_images, judged_golden
from tornpage.properties.judge.rulings import counted
from tornpage.properties.scratch import memory_directory, scratch_directory
from tornpage.run.writing import write_whole, writing

if TYPE_CHECKING:
    from tornpage.peers.rocketmq.installing import Release

__all__ = ["compare_outcome", "compared_rows", "page_rows"]

_SECOND = "## Judged number by number"
_ANSWER_S = 60.0
_NO_START = "does not start"
_CELLS = 3
"""Least number of cells of a row of a table."""


def page_rows(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the rows of both tables of the page, by image."""
    first, _, second = text.partition(_SECOND)
    return _rows_in(first), _rows_in(second)


def _rows_in(text: str) -> dict[str, str]:
    rows = [line for line in text.splitlines() if line.startswith("| ") and line.count("|") > _CELLS]
    return {line.split("|")[1].strip(): line for line in rows[1:]}


def compared_rows(
    release: "Release", image: GoldenImage, rows: tuple[dict[str, str], dict[str, str]]
) -> list[tuple[str, str]]:
    """Return both rows of an image, as on the page and as a live run gives them.

    A row that the page lacks is empty.     Raises PeerError, InspectError.
    """
    with (
        Process(release, Limits(answer_s=_ANSWER_S)) as process,
        scratch_directory("tornpage-compare-", below=memory_directory()) as work,
    ):
        live = live_row(process, image, Path(work) / "store")
    first, second = rows[0].get(image.name, ""), rows[1].get(image.name, "")
    return [(first, _first_row(first, live)), (second, _second_row(image, live))]


def _first_row(row: str, live: LiveRow) -> str:
    """Return a row of the first table with RocketMQ's half of each cell replaced."""
    cells = [cell.strip() for cell in row.split("|")[2:-1]]
    if live.worst is None:
        ours = cells[0].partition(", ")[2] if cells and cells[0].startswith(_NO_START) else "?"
        return f"| {live.image} | {_NO_START}, {ours} |{' |' * 7}"
    ours_half = [cell.partition(", ")[2] or "0" for cell in cells] or ["?"] * len(live.worst)
    joined = [
        "" if (str(theirs), ours) == ("0", "0") else f"{theirs}, {ours}"
        for theirs, ours in zip(live.worst, ours_half, strict=False)
    ]
    return f"| {live.image} | {' | '.join(joined)} |"


def _second_row(image: GoldenImage, live: LiveRow) -> str:
    """Return the row of the second table, with RocketMQ's columns from the live run."""
    row = replace(judged_golden(image, samples=0), rocketmq_kept=live.kept, rocketmq_numbers=live.numbers)
    return golden_text([row]).splitlines()[-1]


def compare_outcome(
    release: "Release",
    stores: str,
    page: str,
    *,
    write: bool,
    progress: Callable[[str], None] = lambda name: None,
) -> tuple[Outcome, str]:
    """Compare a page with live runs on all images, or write their rows into it.

    The verdict is broken if a row differs. Rows of images that are not at hand stay, and are named.
    """
    try:
        images = golden_images(Path(stores))
        text = Path(page).read_text(encoding="utf-8")
    except InspectError as error:
        refuse(str(error))
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"cannot read {page}: {getattr(error, 'strerror', None) or error}; name another --page")
    rows = page_rows(text)
    differing: list[dict[str, Any]] = []
    done, interrupted = [], False
    try:
        for image in images:
            progress(image.name)
            for stated, live in compared_rows(release, image, rows):
                if stated != live:
                    differing.append({"image": image.name, "page": stated, "live": live})
            done.append(image.name)
    except KeyboardInterrupt:
        interrupted = True
    except PeerUnavailable as error:
        refuse(str(error))
    except (PeerError, InspectError) as error:
        refuse(f"{image.name}: {error}")
    written = 0
    if write and differing and not interrupted:
        for each in differing:
            if each["page"] and each["page"] in text:
                text = text.replace(each["page"], each["live"], 1)
                written += 1
        with writing(page, option="--page"):
            write_whole(page, text)
    missing = sorted({*rows[0]} - {image.name for image in images})
    figures = {"images": len(done), "rows": 2 * len(done), "rows_different": len(differing), "rows_written": written}
    findings = [
        {
            "code": "row-differs",
            "severity": "broken",
            "sentence": f"{each['image']}: page {each['page'] or 'no row'}; live {each['live']}",
        }
        for each in differing
    ]
    findings += [
        {"code": "skipped", "severity": "note", "sentence": f"{name}: its store is not at hand"} for name in missing
    ]
    verdict = "vacuous" if not done else "broken" if len(differing) > written else "holds"
    outcome = Outcome(
        "peer compare", verdict, figures, findings=findings, interrupted=interrupted,
        extra={"peer": f"rocketmq:{release.version}", "page": page, "differences": differing},
    )  # fmt: skip
    return outcome, _text(outcome, differing, missing)


def _text(outcome: Outcome, differing: Sequence[dict[str, Any]], missing: Sequence[str]) -> str:
    lines: list[str] = []
    for each in differing:
        lines += [f"page: {each['page'] or 'no row'}", f"live: {each['live']}", ""]
    if missing:
        lines.append(f"not at hand, their rows were not compared: {', '.join(missing)}")
    figures = outcome.figures
    lines += [
        f"{counted(figures['rows'], 'row')} of {counted(figures['images'], 'image')}: {figures['rows_different']} "
        "different, "
        f"{figures['rows_written']} written",
        f"verdict: {'interrupted' if outcome.interrupted else outcome.verdict}",
    ]
    return "\n".join(lines)
