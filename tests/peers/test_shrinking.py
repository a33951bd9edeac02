"""Test that counterexamples of a peer are shrunk and show again."""

import pytest

from tornpage.model.operations import Crash
from tornpage.peers.exploring import PeerPlan, explore_with_peer
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.shrinking import shrink_examples
from tornpage.peers.verdicts import example_document, example_in
from tornpage.properties.program.case import Settings


@pytest.mark.deep
def test_a_counterexample_gets_smaller_and_shows_again(release: Release) -> None:
    found = explore_with_peer(release, PeerPlan(Settings(disk="journal"), states=40))
    before = {5: found.examples[5]}
    (small,) = shrink_examples(before, release, is_own=False, seconds=3).values()
    assert small.ruling.contract == 5
    assert small.weight < before[5].weight
    assert small.own_broken == ""
    assert isinstance(small.case.operations[-1], Crash)
    assert "tries" in small.how
    (again,) = shrink_examples({5: small}, release, is_own=False, seconds=0.01).values()
    assert again.weight <= small.weight
    assert not again.how.startswith("not shrunk")


def test_without_time_nothing_is_shrunk(release: Release) -> None:
    found = explore_with_peer(release, PeerPlan(Settings(disk="journal"), states=20))
    assert shrink_examples(found.examples, release, is_own=False, seconds=0) == found.examples


def test_an_example_survives_its_document(release: Release) -> None:
    found = explore_with_peer(release, PeerPlan(Settings(disk="journal"), states=20))
    assert found.examples
    for example in found.examples.values():
        assert example_in(example_document(example)) == example
