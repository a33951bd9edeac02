"""Test reviews of mutants: they name mutants of the store, and stale ones do not count."""

from dataclasses import replace

import pytest

from tornpage.properties.mutation import review
from tornpage.properties.mutation.campaign import MutationPlan, judge_mutants
from tornpage.properties.mutation.mutants import mutant_of
from tornpage.properties.mutation.reach import Reach, ReachRow
from tornpage.properties.mutation.trials import MutantEnd, MutantRow

_ID = "put.delayed_copy:copy_of:swapped-statements:1"


@pytest.mark.slow
def test_every_review_is_of_a_mutant_of_the_store_and_has_a_reason() -> None:
    stale = {name: why for name, each in review.reviews().items() if (why := review.stale_because(each))}
    assert not stale, "after a new look at them, remove change and scope, and run the module review"
    assert all(len(each.reason) > 20 for each in review.reviews().values())


def test_a_review_counts_only_while_change_and_function_are_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    mutant, known = mutant_of(_ID), review.reviews()[_ID]
    assert review.reason_of(mutant) == known.reason
    for name, why in (("change", "it was reviewed as: x"), ("scope", "the function around it has changed")):
        stale = replace(known, **{name: "x"})
        monkeypatch.setattr(review, "reviews", lambda stale=stale: {_ID: stale})
        assert not review.reason_of(mutant)
        assert review.stale_because(stale).startswith(why)


@pytest.mark.parametrize(("end", "verdict"), [("survived", "presumed equivalent"), ("killed", "killed")])
def test_a_reviewed_mutant_is_tried_and_a_kill_outweighs_the_review(end: MutantEnd, verdict: str) -> None:
    mutant = mutant_of(_ID)
    reach = Reach({"covering": ReachRow("covering", 0, 1.0, {mutant.statement: 0.0})})
    plan = MutationPlan((mutant,), ("covering",), 1.0, 0, reach=reach)
    assert judge_mutants(plan, [])[0].verdict == "no result"
    assert judge_mutants(plan, [MutantRow(_ID, "covering", 0, 1.0, end, 1.0, is_reached=True)])[0].verdict == verdict
