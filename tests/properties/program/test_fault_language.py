"""Test the language of fault rules: it reads its own output, and errors name the column."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tornpage.model.operations import AimFault
from tornpage.properties.program.case import BadToken, Case, Settings
from tornpage.properties.program.fault_calls import KINDS
from tornpage.properties.program.fault_language import BadFaultRule, fault_rule_of, parse_fault, parse_predicate
from tornpage.properties.program.fault_predicates import (
    And,
    Every,
    Kind,
    Not,
    Nth,
    Operation,
    Or,
    Path,
    Predicate,
    Probability,
    text_of,
)

words = st.text(st.sampled_from("abz*?/. ()=,"), min_size=1, max_size=8)
tests: st.SearchStrategy[Predicate] = st.one_of(
    st.builds(Path, words),
    st.builds(Kind, st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3).map(tuple)),
    st.just(Operation(("sync",))),
    st.builds(Nth, st.integers(1, 999_999_999)),
    st.builds(Every, st.integers(1, 9)),
    st.builds(Probability, st.floats(0, 1, exclude_min=True)),
)
predicates: st.SearchStrategy[Predicate] = st.recursive(
    tests,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=8,
)


@given(predicates)
def test_a_predicate_is_read_as_it_is_written(predicate: Predicate) -> None:
    assert parse_predicate(text_of(predicate), "sync-lost") == predicate


def test_a_fault_travels_in_a_case() -> None:
    case = Case(Settings(), (fault_rule_of("sync-lost:(op = sync)and not kind=log,queue", seed=3),))
    assert Case.from_token(case.token()) == case
    (written,) = json.loads(json.dumps(case.document()))["operations"]
    assert written == {"op": "aim_fault", "effect": "sync-lost", "where": "op=sync and not kind=log,queue", "seed": 3}


def test_a_case_with_a_fault_that_is_none_is_refused() -> None:
    document = Case(Settings(), (AimFault(),)).document()
    document["operations"][0]["where"] = "kind=lgo"
    with pytest.raises(BadToken, match="did you mean log"):
        Case.from_text(json.dumps(document))


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("", 1, "begins with its name: sync-error, sync-lost"),
        ("sync-lots: kind=log", 1, "did you mean sync-lost"),
        ("sync-lost: kind=lgo and nth=1", 17, "unknown kind 'lgo'; did you mean log"),
        ("sync-lost: kind=log,qeue", 21, "did you mean queue"),
        ("sync-lost: kidn=log", 12, "did you mean kind?"),
        ("sync-lost: kind=log op=sync", 21, "'and' or 'or' is missing before 'op'"),
        ("sync-lost: kind=log and", 24, "is expected at the end"),
        ("sync-lost: and kind=log", 12, "is expected instead of 'and'"),
        ("sync-lost: (kind=log or (nth=2)", 32, "the parenthesis of column 12 is not closed"),
        ("sync-lost: kind=log)", 20, "no parenthesis is open"),
        ("sync-lost: kind", 16, "'=' is expected after 'kind'"),
        ("sync-lost: kind=", 17, "kind has no value"),
        ('sync-lost: path="a b', 17, "a quotation mark is not closed"),
        ("sync-lost: op=rename", 15, "sync-lost never hits rename: it hits sync"),
        ("sync-lost: nth=0", 16, "nth is a number from 1"),
        ("sync-lost: every=" + "9" * 5_000, 18, "every is a number from 1"),
        ("sync-lost: probability=2", 24, "probability is more than 0 and at most 1"),
        ("sync-lost: probability=nan", 24, "probability is more than 0"),
        ("sync-lost: " + "(" * 9_000, 52, "go 40 deep at most"),
        ("sync-lost: " + "not " * 9_000, 172, "go 40 deep at most"),
    ],
)
def test_a_mistake_is_answered_with_its_column(text: str, column: int, said: str) -> None:
    with pytest.raises(BadFaultRule) as refused:
        parse_fault(text)
    assert refused.value.column == column
    assert said in refused.value.sentence


@given(st.text(st.sampled_from('syncloterad-: kinpth=(),"124.*'), max_size=40))
def test_whatever_is_written_is_a_fault_or_a_mistake_with_a_place(text: str) -> None:
    mistakes = []
    try:
        effect, predicate = parse_fault(text)
        assert parse_fault(f"{effect}: {text_of(predicate)}") == (effect, predicate)
    except BadFaultRule as mistake:
        mistakes.append(mistake)
    assert all(1 <= mistake.column <= len(text) + 1 for mistake in mistakes)
