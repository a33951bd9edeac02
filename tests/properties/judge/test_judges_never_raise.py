"""Test that each judge returns a ruling on every broken store and never raises."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.properties.damaged_stores import Stores, judge_everywhere
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.judge.judges import JUDGES
from tornpage.properties.judge.rulings import NAMES, Ruling

STORES = 10_000
"""Number of damaged stores in the deep profile; the default suite takes the first of them."""
FIRST = 200
IMAGES_EVERY = 4
"""In the default suite each fourth store is judged as an image too, in the deep profile each one."""


@pytest.fixture
def stores(tracker: DirtyTracker, tmp_path: Path) -> Stores:
    return Stores.make(tracker, tmp_path)


def rulings_on(stores: Stores, seeds: range, *, images_every: int = 1) -> Iterator[tuple[int, str, Ruling]]:
    for seed in seeds:
        for name, ruling in judge_everywhere(stores, seed, images=seed % images_every == 0):
            assert ruling.verdict in ("holds", "broken", "unknown"), (seed, name)
            assert ruling.contract in NAMES, (seed, name)
            assert ruling.sentence or ruling.verdict == "holds", (seed, name)
            yield seed, name, ruling


@pytest.mark.slow
def test_judge_of_a_damaged_store_returns_a_ruling(stores: Stores) -> None:
    words: dict[str, set[str]] = {}
    for _, name, ruling in rulings_on(stores, range(FIRST), images_every=IMAGES_EVERY):
        words.setdefault(name, set()).add(ruling.verdict)
    assert words.keys() >= {judge.__name__ for judge in JUDGES}
    silent = {name for name, said in words.items() if "broken" not in said and name.removeprefix("image: ") in DAMAGED}
    assert silent == set(), "the damage never reaches what these judges look at"


DAMAGED = frozenset(judge.__name__ for judge in JUDGES) - {"nothing_delayed_is_left_out"} | {
    "Prefix", "Floor", "No resurrection", "Queues", "Index", "Idempotent", "Starts", "Watermarks", "Progress files",
    "judge_directory", "legal_after", "foreign", "promises_are_kept", "ends_as_explained",
}  # fmt: skip
"""The judges that have to refuse some of the damaged stores; no damage changes which messages are delayed."""


@pytest.mark.deep
def test_judge_of_any_damaged_store_returns_a_ruling(stores: Stores) -> None:
    assert sum(1 for _ in rulings_on(stores, range(FIRST, STORES))) > STORES
