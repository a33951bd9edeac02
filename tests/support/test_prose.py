"""The check of prose finds what it is there for."""

import pytest

from tests.support.prose import ROOT, WORDS, findings_in_page, findings_in_source, read_words

LISTED = read_words(WORDS.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "source",
    [
        '"""Somebody writes."""',
        "x = 1  # nobody reads this",
        'print(f"{x} and whoever waits")',
        'def f():\n    """Return bytes.\n\n    They lie in front of the end.\n    """',
        '"""' + "a" * 89 + '"""',
    ],
)
def test_source_with_a_fault_is_found(source: str) -> None:
    assert len(list(findings_in_source("a.py", source, LISTED))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "nobody = 1",
        "NAMES = {'nobody': 1}",
        '"""' + "a" * 88 + '"""',
        "# names a body",
        "# the bug answer-wakes-nobody",
    ],
)
def test_names_and_short_lines_pass(source: str) -> None:
    assert list(findings_in_source("a.py", source, LISTED)) == []


def test_finding_names_place_word_and_remedy() -> None:
    assert list(findings_in_page("a.md", "One.\nIn front of it.\n", LISTED)) == ["a.md:2: 'In front of': write before"]


def test_each_word_has_a_remedy() -> None:
    assert LISTED
    assert all(instead for instead in LISTED.values())


def test_make_lint_looks_for_the_words() -> None:
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").split("\nlint:")[1].split("\n\n")[0]
    assert "python -P tests/support/prose.py" in recipe


@pytest.mark.parametrize("words", ["made anew", "be it full", "for whom", "closed behind that", "is told of it"])
def test_words_of_the_house_are_refused(words: str) -> None:
    assert len(list(findings_in_page("a.md", words, LISTED))) == 1
