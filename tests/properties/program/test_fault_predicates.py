"""Test which calls a predicate selects: counts come last, and draws depend on the seed."""

import random
from collections.abc import Sequence

import pytest

from tornpage.properties.disk.enabled_rule import EnabledRule
from tornpage.properties.program.fault_calls import Call, kind_of
from tornpage.properties.program.fault_language import parse_predicate
from tornpage.properties.program.fault_predicates import matcher_of

LOG = "/store/commitlog/00000000000000000000"
QUEUE = "/store/consumequeue/T/0/00000000000000000000"
CALLS = [Call("sync", (path,)) for path in (LOG, QUEUE, LOG, QUEUE, LOG, LOG)]


def hits(where: str, calls: Sequence[Call] = CALLS, *, seed: int = 0) -> list[int]:
    holds = matcher_of(parse_predicate(where, "sync-lost"), random.Random(seed))
    return [number for number, call in enumerate(calls) if holds(call)]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("", [0, 1, 2, 3, 4, 5]),
        ("kind=log", [0, 2, 4, 5]),
        ("not kind=log", [1, 3]),
        ("kind=log,queue and nth=2", [1]),
        ("kind=log and nth=2", [2]),
        ("nth=2 and kind=log", [2]),
        ("kind=log and every=2", [2, 5]),
        ("kind=log and not nth=2", [0, 4, 5]),
        ("(kind=log and nth=1) or (kind=queue and nth=2)", [0, 3]),
        ("nth=1 or nth=3", [0, 2]),
        ("path=consumequeue/*", [1, 3]),
        ("path=/commitlog/*", []),
        ("path=/store/commitlog/*", [0, 2, 4, 5]),
        ("kind=index or path=*/T/0/*", [1, 3]),
    ],
)
def test_a_predicate_means_these_calls(where: str, expected: list[int]) -> None:
    assert hits(where) == expected


def test_draws_are_those_of_the_seed() -> None:
    calls = CALLS * 50
    assert hits("probability=0.5", calls, seed=1) == hits("probability=0.5", calls, seed=1)
    assert hits("probability=0.5", calls, seed=1) != hits("probability=0.5", calls, seed=2)
    assert 90 < len(hits("probability=0.5", calls, seed=1)) < 210
    assert hits("probability=1") == list(range(6))


def test_a_fault_counts_the_calls_it_could_have_hit() -> None:
    fault = EnabledRule("sync-lost", "kind=log and nth=2", 0)
    struck = [fault.strikes(call) for call in (*CALLS, Call("pwrite", (LOG,)))]
    assert struck == [False, False, True, False, False, False, False]
    assert (fault.met, fault.fired) == (6, 1)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (LOG, "log"),
        ("/store/morelog/00000000000000004096", "log"),
        (QUEUE, "queue"),
        ("/store/consumequeue_ext/T/0/00000000000000000000", "extension"),
        ("/store/index/20260101000000000", "index"),
        ("/store/checkpoint", "checkpoint"),
        ("/store/abort", "marker"),
        ("/store/lock", "lock"),
        ("/store/config/durableFloor", "floor"),
        ("/store/config/derivedFloor.new", "derived-floor"),
        ("/store/config/consumerOffset.json.bak.tmp", "progress"),
        ("/store/config/lmqConsumerOffset.json", "progress"),
        ("/store/config/delayOffset.json.bak", "progress"),
        ("/store/config/topics.json", "other"),
    ],
)
def test_a_path_tells_the_kind_of_a_file(path: str, kind: str) -> None:
    assert kind_of(path) == kind


def test_calls_for_directories_are_of_their_own_kind() -> None:
    assert Call("sync_directory", ("/store/commitlog",)).kind == "directory"
