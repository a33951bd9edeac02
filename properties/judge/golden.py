"""Judge crash images that RocketMQ wrote.

A folder has `store/`, `config.json` (the settings), `truth.json` (records acknowledged to the producer) and
`expected.json` (RocketMQ's answers, step by step). `variants/NAME.json` may describe further damage to a copy, with
RocketMQ's answers to it. Only stores of killed brokers are crash images.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tornpage.impl.parts import Parts
from tornpage.properties.decode.opening import InspectError, shown
from tornpage.properties.judge.image import read_image, truth_of
from tornpage.properties.judge.judgement import SAMPLES, Judgement, judge_image
from tornpage.properties.judge.shape import SettingsOverride, read_override
from tornpage.properties.program.case import Disk
from tornpage.properties.scratch import scratch_directory

__all__ = [
    "GoldenImage",
    "GoldenRow",
    "GoldenSteps",
    "apply_damage",
    "golden_images",
    "golden_steps",
    "judged_golden",
]

_SERVED_WRONG = (
    "messagesServedAtWrongQueueOffset",
    "messagesServedFromForeignQueue",
    "queueEntriesWithWrongTagsCode",
    "recordsInLogNotReachableThroughTheirQueue",
    "recordsServedNeverWrittenInThisForm",
)

_NUMBERS_OF_ROCKETMQ: Mapping[int, Sequence[str]] = {
    1: ("logRecordsNeverWrittenInThisForm",),
    3: ("recordsThatCameBackAfterHavingBeenCut",),
    4: _SERVED_WRONG,
    5: ("logRecordsWithKeysMissingFromIndex",),
}
"""The comparisons of RocketMQ's answers with the truth that break a contract number if they are not zero."""


@dataclass(frozen=True, slots=True)
class GoldenImage:
    """One crash image: a folder, and the name of a variant or an empty text."""

    folder: Path
    variant: str = ""

    @property
    def name(self) -> str:
        """The name of the image in tables."""
        return f"{self.folder.name[:2]}: {self.variant}" if self.variant else self.folder.name


@dataclass(frozen=True, slots=True)
class GoldenRow:
    """The results of RocketMQ and of tornpage's store on one image.

    `numbers` are the broken contract numbers.

    Records are those that were acknowledged to the producer. `rocketmq_kept` counts the first dump of RocketMQ; it is
    None if RocketMQ did not start.
    """

    image: str
    acknowledged: int
    rocketmq_kept: int | None
    rocketmq_numbers: tuple[int, ...]
    kept: int
    in_quarantine: int
    mode: str
    numbers: tuple[int, ...]
    not_judged: tuple[int, ...]
    judgement: Judgement


def golden_images(place: Path) -> list[GoldenImage]:
    """Return the crash images below a directory, or of one image folder. Raises InspectError."""
    try:
        folders = [place] if (place / "truth.json").is_file() else sorted(p for p in place.iterdir() if p.is_dir())
    except OSError as error:
        raise InspectError(
            f"cannot list {shown(place)}: {error.strerror}; give a directory of golden stores"
        ) from error
    images: list[GoldenImage] = []
    for folder in folders:
        if (folder / "truth.json").is_file() and _read(folder / "config.json").get("lastExit") == "killed":
            images.append(GoldenImage(folder))
            images += [GoldenImage(folder, path.stem) for path in sorted((folder / "variants").glob("*.json"))]
    if not images:
        raise InspectError(f"no crash image in {shown(place)}: no folder has a truth.json and a killed broker's store")
    return images


def judged_golden(
    image: GoldenImage,
    *,
    components: Parts | None = None,
    disk: Disk = "posix-strict",
    samples: int | None = SAMPLES,
    losses: int = 1,
    seed: int = 0,
    progress: Callable[[str], None] = lambda what: None,
) -> GoldenRow:
    """Judge one image with the truth of its producer.

    Raises InspectError for an incomplete folder.
    """
    progress(image.name)
    answers = _read(image.folder / (f"variants/{image.variant}.json" if image.variant else "expected.json"))
    document = _read(image.folder / "truth.json")
    if image.variant:
        document = document | {"damage": answers["damage"]}
    truth = truth_of(document)
    with scratch_directory("tornpage-golden-") as directory:
        copy = Path(directory) / "store"
        try:
            shutil.copytree(image.folder / "store", copy, copy_function=shutil.copyfile)
            apply_damage(copy, answers.get("damage", []) if image.variant else [])
        except OSError as error:
            reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            raise InspectError(f"cannot copy {shown(image.folder / 'store')}: {reason}; make room") from error
        judgement = judge_image(
            read_image(copy),
            override=_override(image.folder),
            truth=truth,
            components=components,
            disk=disk,
            samples=samples,
            losses=losses,
            seed=seed,
        )
    acknowledged = len(truth.records)
    kept, numbers = _of_rocketmq(answers, acknowledged)
    return GoldenRow(
        image.name,
        acknowledged,
        kept,
        numbers,
        acknowledged - judgement.figures["records_lost"],
        judgement.figures["records_in_quarantine"],
        judgement.mode,
        tuple(judgement.numbers("broken")),
        tuple(
            number for number in judgement.numbers("unknown") if number in (1, 2, 3, 4, 5, 6, 7, 9, 13, 14, 16, 17, 18)
        ),
        judgement,
    )


class GoldenSteps(NamedTuple):
    """The recorded steps of RocketMQ on one image.

    `told` has the tags of the acknowledged records, by physical offset and SHA-256.
    """

    steps: list[dict[str, Any]]
    damage: list[dict[str, Any]]
    settings: dict[str, Any]
    told: dict[tuple[int, str], str | None]


def golden_steps(image: GoldenImage) -> GoldenSteps:
    """Return what was done with an image. Raises InspectError."""
    answers = _read(image.folder / (f"variants/{image.variant}.json" if image.variant else "expected.json"))
    records = _read(image.folder / "truth.json")["records"]
    told = {(row["commitLogOffset"], row["recordSha256"]): row["tags"] for row in records}
    damage = answers.get("damage", []) if image.variant else []
    return GoldenSteps(answers["steps"], damage, _read(image.folder / "config.json")["store"], told)


def apply_damage(directory: Path, damage: Sequence[Mapping[str, Any]]) -> None:
    """Apply damage operations to a copy of a store.

    They are `zero`, `write`, `delete`, `truncate` and `create`.
    """
    for step in damage:
        path = directory / step["path"]
        match step["op"]:
            case "delete":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            case "create":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(bytes.fromhex(step["hex"]))
            case "truncate":
                os.truncate(path, step["length"])
            case _:
                data = bytes(step["length"]) if step["op"] == "zero" else bytes.fromhex(step["hex"])
                with open(path, "r+b") as file:
                    file.seek(step["offset"])
                    file.write(data)


def _override(folder: Path) -> SettingsOverride:
    acknowledged = _read(folder / "config.json")["store"]
    text = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in acknowledged.items()}
    return read_override(text, source=str(folder / "config.json"))


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InspectError(f"cannot read {shown(path)}: {reason}; give whole golden stores") from error
    if not isinstance(document, dict):
        raise InspectError(f"{shown(path)} is not a document of a golden store; give whole golden stores")
    return document


def _of_rocketmq(answers: Mapping[str, Any], acknowledged: int) -> tuple[int | None, tuple[int, ...]]:
    """Return the number of records that RocketMQ kept, and the broken contract numbers.

    The records are acknowledged ones in its first dump, compared by physical offset and bytes. A record of a missing
    log file is not among them. A number is broken if any of its answers breaks it.
    """
    compared = list(_compared(answers))
    if not compared:
        return None, (7,)
    numbers = [
        number
        for number, names in _NUMBERS_OF_ROCKETMQ.items()
        if any(each.get(name, 0) for each in compared for name in names)
    ]
    states = [step["state"] for step in answers["steps"] if step["do"] == "dump"]
    if any(state.get("dispatchBehindBytes", 0) < 0 for state in states):
        numbers.append(16)
    return acknowledged - compared[0]["acknowledgedRecordsMissingFromLog"], tuple(numbers)


def _compared(answers: Mapping[str, Any]) -> Iterator[Mapping[str, int]]:
    for step in answers["steps"]:
        if step["do"] == "dump":
            yield step["comparedWithTruth"]
