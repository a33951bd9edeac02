"""Compare the answers of RocketMQ 4.9.3 about the golden stores with those of this store.

The list of departures names each difference and its reason. The model shares no code with the store and has to give the
store's answers.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.model.test_golden_reads import layout_for
from tests.support.impl.golden import CASES, ROOT, read
from tests.support.impl.golden_answers import count_of
from tests.support.impl.golden_departures import DAMAGES, REASONS, departures_of, listed, stores
from tests.support.impl.golden_figures import DAMAGED, PAGE, figures_by_dump, row_of
from tests.support.impl.golden_model import answers_of_model, log_of
from tests.support.impl.golden_steps import Golden, Replay, Step

LOST = "lost index file"
VARIANTS = 20


class Replayed(NamedTuple):
    """A golden store and all its steps, repeated."""

    store: Golden
    steps: list[Step]

    @property
    def dumps(self) -> list[Step]:
        """The steps that contain the questions."""
        return [step for step in self.steps if step.told["do"] == "dump"]


def name_of(place: tuple[str, str | None]) -> str:
    """Return the configuration of a store."""
    return "/".join(filter(None, place))


@pytest.fixture(scope="module", params=stores(), ids=name_of)
def replayed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    case, variant = request.param
    store = Golden.copied(case, tmp_path_factory.mktemp("golden") / "store", variant)
    return Replayed(store, list(Replay(store)))


def test_answers_depart_where_the_list_says_so(replayed: Replayed) -> None:
    """Every difference is listed, and every listed difference occurs."""
    found = [row for step in replayed.steps for row in departures_of(replayed.store, step)]
    assert found == [row for row in listed() if row.store == replayed.store.name]
    answers = sum(count_of(step.theirs) for step in replayed.steps)
    assert answers >= (100 if replayed.dumps else 4)


def test_answers_are_those_of_the_model(replayed: Replayed) -> None:
    layout = layout_for(read(replayed.store.folder / "config.json")["store"])
    for step in replayed.dumps:
        expected = answers_of_model(log_of(step.records), layout, step.told["state"])
        groups = {group for group, _ in expected}
        ours = {place: dict(row) for place, row in step.ours.items() if place[0] in groups}
        assert ours.keys() == expected.keys()
        for (group, about), row in expected.items():
            found = ours[group, about]
            if group == "entries":  # an extension holds the code that a unit has no room for
                found["tagsCode"] = found["ext"]["tagsCode"] if found["ext"] else found["code"]
            assert {name: found[name] for name in row if name in found} == {
                name: value for name, value in row.items() if name in found
            }, (step.number, group, about)


@pytest.mark.parametrize("replayed", DAMAGED, indirect=True, ids=name_of)
def test_every_record_below_the_damage_is_served(replayed: Replayed) -> None:
    """Each message is found by its offset, its queue and its keys, at every dump.

    Nothing else is found.
    """
    truth = read(replayed.store.folder / "truth.json")
    for step, theirs, ours in figures_by_dump(replayed.store, replayed.steps):
        compared = step.told["comparedWithTruth"]
        assert (theirs.lost, theirs.unreachable, theirs.without_keys, theirs.twice, theirs.wrong_code) == (
            compared["acknowledgedRecordsMissingFromLog"],
            compared["recordsInLogNotReachableThroughTheirQueue"],
            compared["logRecordsWithKeysMissingFromIndex"],
            compared["duplicateQueueOffsetsInLog"],
            compared["queueEntriesWithWrongTagsCode"],
        )
        assert ours[1:] == (0,) * 7
        damaged_at = first_damaged_byte(replayed.store)
        kept = {(record.offset, record.offset + record.size_bytes) for record in step.records}
        assert kept >= {
            (row["commitLogOffset"], end)
            for row in truth["records"]
            if (end := row["commitLogOffset"] + row["storeSize"]) <= damaged_at
        }


def first_damaged_byte(store: Golden) -> int:
    """Return the physical offset of the first damaged byte of the log."""
    variant = store.name.partition("/")[2]
    told = read(store.folder / "variants" / f"{variant}.json") if variant else read(store.folder / "truth.json")
    places = [1 << 62]
    for step in told.get("damage", []):
        path = Path(step["path"])
        if path.parts[0] == "commitlog":
            base = int(path.name) if path.name.isdigit() else 0
            places.append(base + step.get("length", 0) if step["op"] == "truncate" else base + step.get("offset", 0))
    return min(places)


@pytest.mark.parametrize("replayed", DAMAGED, indirect=True, ids=name_of)
def test_page_has_the_figures(replayed: Replayed) -> None:
    assert row_of(replayed.store, replayed.steps) in PAGE.read_text(encoding="utf-8").splitlines()


def test_reasons_are_told() -> None:
    """The page has a row for each reason of the list and no other.

    Each difference has a reason.
    """
    page = (ROOT / "docs" / "departures.md").read_text(encoding="utf-8")
    section = page.split("## Answers that differ from Java's recorded ones")[1].split("\n## ")[0]
    told = [
        line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ") and "`tests" not in line
    ]
    named = {row.reason for row in listed()}
    assert named <= set(told)
    assert named == {*REASONS, *DAMAGES.values(), LOST}
    assert {row.store for row in listed()} == {name_of(place) for place in stores()}
    assert len(stores()) == len(CASES) + VARIANTS
