"""A judged crash image, or all golden ones, as a document and as text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tornpage.cli.document import Outcome
from tornpage.cli.progress import steps_progress
from tornpage.outcomes.inspecting import printable
from tornpage.properties.judge.golden import GoldenRow
from tornpage.properties.judge.judgement import Judgement
from tornpage.properties.judge.rulings import Ruling
from tornpage.properties.judge.shape import SettingsOverride
from tornpage.properties.program.case import Disk
from tornpage.render.redacting import AS_IT_IS, Showing

__all__ = [
    "Judging",
    "golden_outcome",
    "golden_text",
    "image_outcome",
    "image_text",
    "judged_golden_images",
    "judged_image",
    "shown_judgement",
]

_STEPS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """How images are judged.

    Recovery is crashed at `samples` of its file operations, None for all, with `losses` drawn power losses at each.
    """

    bug: str
    disk: Disk
    samples: int | None
    losses: int
    seed: int


def judged_image(
    path: str, judging: Judging, *, given: SettingsOverride, truth: str | None, power_loss: bool | None
) -> Judgement:
    """Read and judge one image. Raises InspectError or HarnessError."""
    from tornpage.properties.judge.image import read_image, read_truth
    from tornpage.properties.judge.judgement import judge_image
    from tornpage.properties.planted import parts_of

    told = None if truth is None else read_truth(truth, power_loss=power_loss)
    with steps_progress("judge", total=_STEPS) as show:
        return judge_image(
            read_image(path),
            override=given,
            truth=told,
            components=parts_of(judging.bug),
            disk=judging.disk,
            samples=judging.samples,
            losses=judging.losses,
            seed=judging.seed,
            progress=show,
        )


def judged_golden_images(path: str, judging: Judging) -> list[GoldenRow]:
    """Judge all crash images of golden stores. Raises InspectError, HarnessError."""
    from tornpage.properties.judge.golden import golden_images, judged_golden
    from tornpage.properties.planted import parts_of

    images, parts = golden_images(Path(path)), parts_of(judging.bug)
    with steps_progress("judge", total=len(images)) as show:
        return [
            judged_golden(
                image,
                components=parts,
                disk=judging.disk,
                samples=judging.samples,
                losses=judging.losses,
                seed=judging.seed,
                progress=show,
            )
            for image in images
        ]


def shown_judgement(judgement: Judgement, show: Showing) -> Judgement:
    """Return a judgement, redacted if requested."""
    return replace(
        judgement,
        rulings=[replace(ruling, **show.ruling(asdict(ruling))) for ruling in judgement.rulings],
        findings=tuple(replace(finding, **show.finding(asdict(finding))) for finding in judgement.findings),
        store_findings=[show.finding(said) for said in judgement.store_findings],
    )


def image_outcome(judgement: Judgement, *, seed: int, command: str, show: Showing = AS_IT_IS) -> Outcome:
    """Return the outcome of one image; captions name `command`."""
    findings = [_finding(ruling) for ruling in judgement.rulings if ruling.verdict == "broken"]
    findings += [asdict(finding) for finding in judgement.findings]
    rows = [ruling.row() for ruling in judgement.rulings]
    return Outcome(
        "judge",
        judgement.verdict.value,
        judgement.figures,
        findings=[*findings, *judgement.store_findings],
        seed=seed,
        extra={"mode": judgement.mode, "rulings": rows, **show.extra},
        tables={"rulings": {"rows": rows, "caption": _caption(seed, command)}},
    )


def golden_outcome(rows: Sequence[GoldenRow], *, seed: int, command: str) -> Outcome:
    """Return the outcome of golden images: broken if a number is broken for one of them."""
    verdicts = {row.judgement.verdict.value for row in rows}
    verdict = next((word for word in ("broken", "unknown", "holds") if word in verdicts), "unknown")
    findings = [
        {**_finding(ruling), "image": row.image}
        for row in rows
        for ruling in row.judgement.rulings
        if ruling.verdict == "broken"
    ]
    table = [_row(row) for row in rows]
    figures = {
        "images": len(rows),
        "recoveries": sum(row.judgement.figures["recoveries"] for row in rows),
        "crashed_recoveries": sum(row.judgement.figures["crashed_recoveries"] for row in rows),
        "records_told": sum(row.acknowledged for row in rows),
        "records_kept": sum(row.kept for row in rows),
        "records_kept_by_rocketmq": sum(row.rocketmq_kept or 0 for row in rows),
    }
    return Outcome(
        "judge",
        verdict,
        figures,
        findings=findings,
        seed=seed,
        extra={"images": table},
        tables={"crash_images": {"rows": table, "caption": _caption(seed, command)}},
    )


def _caption(seed: int, command: str) -> dict[str, Any]:
    return {"source": "crash images on real disks", "seed": seed, "command": command}


def _row(row: GoldenRow) -> dict[str, Any]:
    return {
        "image": row.image,
        "told": row.acknowledged,
        "rocketmq_kept": row.rocketmq_kept,
        "rocketmq_broken": list(row.rocketmq_numbers),
        "kept": row.kept,
        "in_quarantine": row.in_quarantine,
        "mode": row.mode,
        "broken": list(row.numbers),
        "not_judged": list(row.not_judged),
    }


def _finding(ruling: Ruling) -> dict[str, Any]:
    return {
        "code": f"contract-{ruling.contract}",
        "severity": "broken",
        "sentence": ruling.sentence,
        "file": ruling.file or None,
        "offset": ruling.offset,
        "expected": ruling.expected,
        "found": ruling.found,
    }


def image_text(judgement: Judgement) -> str:
    """Return one judged image for people: a line per number, then what was found."""
    lines = [f"{'no.':>3}  {'':<16}{'verdict':<9}why"]
    for ruling in judgement.rulings:
        lines.append(f"{ruling.contract:>3}  {ruling.name:<16}{ruling.verdict:<9}{printable(ruling.sentence)}")
        if ruling.verdict == "broken":
            lines += [f"{'':30}{printable(text)}" for text in _places(ruling)]
    said: list[Mapping[str, Any]] = [*map(asdict, judgement.findings), *judgement.store_findings]
    lines += ["", f"the store: {judgement.mode}"]
    lines += [printable(f"  {found['severity']}: {found['code']} {found['message']}") for found in said]
    figures = ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in sorted(judgement.figures.items()))
    return "\n".join([*lines, "", figures, "", f"verdict: {judgement.verdict.value}"])


def _places(ruling: Ruling) -> list[str]:
    place = ruling.file + (f" at {ruling.offset}" if ruling.offset is not None else "")
    expected = f"expected {ruling.expected}; found {ruling.found}" if ruling.expected or ruling.found else ""
    return list(filter(None, (place.strip(), expected)))


_HEAD = (
    "image", "told", "kept by RocketMQ", "its broken numbers", "kept here", "in quarantine", "opens", "broken here",
    "not judged",
)  # fmt: skip


def golden_text(rows: Sequence[GoldenRow]) -> str:
    """Return the table of golden images, as docs/against-java.md has it."""
    lines = [f"| {' | '.join(_HEAD)} |", f"|{'---|' * len(_HEAD)}"]
    for row in rows:
        kept = "does not start" if row.rocketmq_kept is None else str(row.rocketmq_kept)
        cells = (
            row.image, str(row.acknowledged), kept, _numbers(row.rocketmq_numbers), str(row.kept),
            str(row.in_quarantine or ""), row.mode, _numbers(row.numbers), _numbers(row.not_judged),
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
