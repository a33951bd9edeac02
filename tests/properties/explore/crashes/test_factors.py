"""Test factors: rows of all pairs, what a row means, the levels that a run had."""

from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from tornpage.model.operations import AimFault, Damage
from tornpage.properties.campaign.coverage import Tally
from tornpage.properties.campaign.pairs import exercised_by
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.crashes import factors
from tornpage.properties.explore.crashes.explore import explore_seed
from tornpage.properties.explore.crashes.factors import (
    EXCLUDED,
    FACTORS,
    PLANNED,
    RUNS_PER_ARRAY,
    RUNS_PER_SHARD,
    SEEDS_PER_SHARD,
    STANDARD_ROW,
    Happened,
    levels_of,
    row_of,
    settings_of_row,
    text_of_levels,
    words_of_row,
)
from tornpage.properties.explore.crashes.scheduling import STANDARD, configuration_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.covering import CoveringArray, possible_pairs
from tornpage.properties.program.drawing import WORDS
from tornpage.properties.program.workload import RULES

PLANNED_PAIRS = {
    frozenset(pair) for pair in possible_pairs(PLANNED, excluded=EXCLUDED) if all(name in PLANNED for name, _ in pair)
}


def happened(**more: Any) -> Happened:
    standard = Happened(Settings(), WORDS, (), Counter(), (), (), fault_in_session=False, sessions=(), clock_ms=0)
    return replace(standard, **more)


def test_few_rows_have_all_pairs_and_none_is_impossible() -> None:
    array = CoveringArray(PLANNED, excluded=[p for p in EXCLUDED if all(name in PLANNED for name, _ in p)], seed="7")
    assert array.pairs_left == len(PLANNED_PAIRS)
    seen: set[frozenset[tuple[str, str]]] = set()
    number = 0
    while array.pairs_left:
        seen |= {frozenset(pair) for pair in combinations(array.row(number).items(), 2)}
        number += 1
    assert seen == PLANNED_PAIRS
    assert not array.impossible
    assert number < RUNS_PER_ARRAY / 2


def test_a_shard_goes_on_in_the_array_where_the_one_before_it_ended() -> None:
    first = [row_of(f"3:{number}") for number in range(RUNS_PER_SHARD)]
    second = [row_of(f"3:{SEEDS_PER_SHARD + number}") for number in range(RUNS_PER_SHARD)]
    array = [row_of(f"3:{number}") for number in range(2 * RUNS_PER_SHARD)]
    assert first + second == array
    far = SEEDS_PER_SHARD * (RUNS_PER_ARRAY // RUNS_PER_SHARD)
    assert row_of(f"3:{far}") == array[0] == STANDARD_ROW
    assert row_of(f"3:{far + 1}") != array[1], "another array has begun"
    assert row_of("4:1") != array[1]


def test_a_row_gives_the_settings_words_and_faults_that_it_names() -> None:
    for number in range(40):
        row, mix = row_of(f"5:{number}"), configuration_of("covering", f"5:{number}")
        settings, words = settings_of_row(row, Settings()), words_of_row(row)
        found = levels_of(
            happened(
                settings=settings,
                words=words,
                hit=Counter(dict.fromkeys((f"rule_{name}" for name in RULES), 1)),
                sessions=mix.sessions,
                clock_ms=mix.clock_ms,
                fault_rules=(mix.choices.fault_rule,),
            )
        )
        for factor in PLANNED:
            if not factor.startswith(("rule_", "step_", "end_")) and factor != "fault_in_session":
                assert found[factor] == (row[factor],), factor
        assert {f"rule_{name}" for name, weight in mix.weights.items() if weight} <= {
            factor for factor, level in row.items() if level == "on"
        }
        assert settings.queue_ext or row["extension"] == "off"
        assert mix.weights["put"] * 2 >= sum(mix.weights.values()), "without puts no log file is ever full"


def test_only_what_happened_counts() -> None:
    nothing = levels_of(happened())
    assert nothing["fault_effect"] == nothing["pulls"] == nothing["sessions"] == ()
    assert nothing["rule_put"] == ()
    assert (nothing["rule_flush"], nothing["step_flush"], nothing["end_clock"]) == (("off",), ("off",), ("none",))
    rule = AimFault("sync-lost", "kind=log and nth=2")
    some = levels_of(
        happened(
            fault_rules=(rule,),
            fault_in_session=True,
            hit=Counter({"rule_put": 3, "flip": 1, "derived_torn": 1, "harmed_queue": 1}),
            operations=(Damage("flip", beside="queue"), Damage("zero_page", beside="index")),
        )
    )
    assert (some["fault_effect"], some["fault_place"], some["fault_calls"]) == (("sync-lost",), ("log",), ("second",))
    assert some["fault_in_session"] == ("on",)
    assert (some["end_damage"], some["end_beside"]) == (("flip",), ("queue",)), "the other damage changed nothing"
    assert (some["end_derived"], some["end_file"], some["topics"]) == (("torn",), ("queue",), ("three",))


def test_a_store_without_an_index_has_no_level_of_it() -> None:
    there = levels_of(happened(settings=Settings(index=False, index_slots=10, index_entries=2)))
    assert (there["index_entries"], there["index_slots"]) == (("none",), ())


@pytest.mark.slow
def test_a_run_tells_the_levels_that_it_had(tracker: DirtyTracker) -> None:
    """Planned settings are always there, rules if they were carried out."""
    tally = Tally()
    for failure in explore_seed("6:3", Settings(), tracker=tracker, tally=tally, strategy="covering"):
        assert failure is None
    [text] = tally.levels
    row = row_of("6:3")
    assert f"durability={row['durability']}" in text.split()
    for name in RULES:
        assert f"rule_{name}={'on' if tally.hit[f'rule_{name}'] else 'off'}" in text.split()
    effect = f"aimed_{row['fault_effect'].replace('-', '_')}"
    assert (f"fault_effect={row['fault_effect']}" in text.split()) == bool(tally.hit[effect])
    exercised = exercised_by(tally.levels, FACTORS, excluded=EXCLUDED)
    assert 1_500 < exercised.exercised < 4_000


def test_the_standard_configuration_has_levels_too() -> None:
    assert STANDARD.row is None
    there = levels_of(happened(hit=Counter({"rule_put": 1, "rule_get_message": 1, "rule_step": 1})))
    assert [there[name] for name in ("topics", "bodies", "properties")] == [("three",), ("mixed",), ("mixed",)]
    assert text_of_levels({"pulls": there["pulls"], "pauses": there["pauses"]}) == "pulls=up_to_32 pauses=mixed"


def test_excluded_pairs_name_levels() -> None:
    known = {(factor, level) for factor, levels in FACTORS.items() for level in levels}
    assert {level for pair in EXCLUDED for level in pair} <= known
    assert len(set(EXCLUDED)) == len(EXCLUDED)
    assert factors.row_of("1:0").keys() == PLANNED.keys()
