"""Test the list of all small programs by brute force: what is left out does nothing."""

from itertools import product

import pytest

from tornpage.model.replication.operations import ClusterOperation
from tornpage.properties.cluster.trial import ClusterTrial
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.cluster.programs import ALPHABET, BEGINNINGS, WITH_FILES, all_programs, does_something
from tornpage.properties.program.cluster_case import ClusterSettings


def what_is_there(trial: ClusterTrial) -> tuple[object, ...]:
    """Return everything that an operation may change."""
    nodes = [
        (node.is_up, node.role, node.master, node.clock_ahead_ms, len(node.files.journal), node.files.failing_syncs)
        for node in trial.nodes
    ]
    links = [
        (
            link.is_closed,
            tuple(link.room),
            *(len(each) for way in (link.sent, link.waiting, link.arrived) for each in way),
        )
        for link in trial.network.links
    ]
    return trial.clock.now_ms, tuple(nodes), tuple(links), tuple(trial._states)


def words(length: int) -> list[tuple[tuple[ClusterOperation, ...], int]]:
    """Return every word of operations after each beginning, and its length."""
    return [
        ((*begin, *word), len(begin))
        for begin, alphabet, shorter in BEGINNINGS
        for word in product(alphabet, repeat=length - shorter)
        if length - shorter > 0
    ]


@pytest.mark.parametrize("length", [1, 2, pytest.param(3, marks=pytest.mark.deep)])
def test_every_word_is_a_program_or_has_an_operation_that_does_nothing(length: int, tracker: DirtyTracker) -> None:
    programs = {str(program) for program in all_programs(length)}
    left_out = idle = 0
    seen: set[str] = set()
    for word, begin in words(length):
        if str(word) in programs:
            continue
        left_out += 1
        place = next(n for n in range(begin, len(word)) if not does_something(word[:n], word[n]))
        if str(word[: place + 1]) in seen:
            continue
        seen.add(str(word[: place + 1]))
        trial = ClusterTrial(ClusterSettings(), tracker=tracker)
        for operation in word[:place]:
            trial.run(operation)
        before = what_is_there(trial)
        trial.run(word[place])
        assert what_is_there(trial) == before, word[: place + 1]
        idle += 1
    assert left_out
    assert idle


def test_programs_are_counted() -> None:
    assert len(ALPHABET) == 19
    assert len(WITH_FILES) == 4
    assert [sum(1 for _ in all_programs(length)) for length in (1, 2, 3)] == COUNTS


COUNTS = [16, 271, 3_899]
"""The numbers of programs of up to 1, 2 and 3 operations."""
