"""Judge the crash images of RocketMQ 4.9.3 and compare with docs/against-java.md."""

import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.golden import ROOT, golden, read
from tests.support.impl.golden_figures import DAMAGED
from tornpage.outcomes.judging import golden_text
from tornpage.properties.judge.golden import GoldenImage, GoldenRow, apply_damage, golden_images, judged_golden
from tornpage.properties.judge.rulings import NEVER_JUDGED

PAGE = ROOT / "docs" / "against-java.md"


def image_of(place: tuple[str, str | None]) -> GoldenImage:
    """Return an image, or skip if it is missing."""
    case, variant = place
    return GoldenImage(golden(case, f"variants/{variant}.json" if variant else "expected.json"), variant or "")


def name_of(place: tuple[str, str | None]) -> str:
    return "-".join(filter(None, place))


def rows_of_the_page() -> list[str]:
    section = PAGE.read_text(encoding="utf-8").split("## Judged number by number")[1]
    return [line for line in section.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("place", DAMAGED, ids=name_of)
def test_the_page_has_the_row(place: tuple[str, str | None]) -> None:
    row = judged_golden(image_of(place), samples=0)
    assert golden_text([row]).splitlines()[-1] in rows_of_the_page()
    _every_loss_has_a_reason(row)


def _every_loss_has_a_reason(row: GoldenRow) -> None:
    """Some images are no crash.

    Only these have fewer records than RocketMQ keeps, or an unjudged number.
    """
    words = {ruling.contract: ruling.verdict for ruling in row.judgement.rulings}
    assert row.numbers == ()
    assert row.kept >= (row.rocketmq_kept or 0) or words[2] == "unknown"
    assert set(row.not_judged).isdisjoint(NEVER_JUDGED)
    assert row.mode == "read-only" or set(row.not_judged) <= {2, 13}


@pytest.mark.parametrize(
    ("variant", "kept"),
    [
        ("log-all-missing", 0),
        ("last-log-file-missing", 167),
        ("hole-before-scan-start", 205),
        ("torn-last-record", 207),
    ],
)
def test_rocketmq_keeps_the_records_whose_bytes_are_in_the_image(variant: str, kept: int, tmp_path: Path) -> None:
    """Of these images RocketMQ keeps every record that verifies, so both counts are equal."""
    image = image_of(("08-halt-async", variant))
    shutil.copytree(image.folder / "store", tmp_path / "store", copy_function=shutil.copyfile)
    apply_damage(tmp_path / "store", read(image.folder / "variants" / f"{variant}.json")["damage"])
    assert _records_in(tmp_path / "store" / "commitlog", read(image.folder / "truth.json")["records"]) == kept
    assert judged_golden(image, samples=0).rocketmq_kept == kept


def _records_in(log: Path, records: list[dict[str, Any]]) -> int:
    """Count the acknowledged records that a log has byte for byte at their offsets."""
    content = b""
    for path in sorted(log.glob("*")):
        assert int(path.name) == len(content), "no file is missing before another one"
        content += path.read_bytes()
    pieces = (content[each["commitLogOffset"] :][: each["storeSize"]] for each in records)
    return sum(sha256(piece).hexdigest() == each["recordSha256"] for piece, each in zip(pieces, records, strict=True))


def test_the_page_has_no_other_row() -> None:
    assert len(rows_of_the_page()) == len(DAMAGED)


@pytest.mark.deep
@pytest.mark.parametrize("place", DAMAGED, ids=name_of)
def test_recovery_may_be_crashed_in_many_places(place: tuple[str, str | None]) -> None:
    row = judged_golden(image_of(place), samples=40)
    assert row.numbers == ()
    assert len(row.judgement.crashes.tried) == min(40, row.judgement.crashes.operations)


def test_the_images_of_every_checkout_are_found() -> None:
    images = golden_images(ROOT / "tests" / "data" / "golden")
    assert [image.name for image in images if not image.variant] == [
        "08-halt-async",
        "09-crash-stale-log-tail",
        "10-crash-torn-properties",
        "11-crash-stale-queue-tail",
    ]
    assert len(images) == 9
    assert all(Path(image.folder, "store", "abort").exists() for image in images)
