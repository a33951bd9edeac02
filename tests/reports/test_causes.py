"""Test findings by cause: one mistake in several places is one cause.

The most serious and most frequent causes come first.
"""

from tornpage.reports.results.causes import causes_of, codes_of
from tornpage.reports.results.findings import Finding, page_name


def finding(code: str, sentence: str, severity: str = "broken", **more: object) -> Finding:
    return Finding(code=code, severity=severity, sentence=sentence, **more)  # type: ignore[arg-type]


def test_numbers_do_not_tell_causes_apart_but_words_codes_and_severities_do() -> None:
    found = causes_of(
        [
            finding("contract-3", "a cut byte is still there at offset 17, 0x1f"),
            finding("contract-3", "a cut byte is still there at offset 4096, 0x2"),
            finding("contract-3", "a cut page is still there at offset 17, 0x1f"),
            finding("contract-4", "a cut byte is still there at offset 17, 0x1f"),
            finding("contract-3", "a cut byte is still there at offset 17, 0x1f", severity="vacuous"),
        ]
    )
    assert [len(cause.findings) for cause in found] == [2, 1, 1, 1]
    assert found[0].sentence == "a cut byte is still there at offset 17, 0x1f"
    assert [cause.number for cause in found] == [1, 2, 3, 4]
    assert found[-1].severity == "vacuous"


def test_names_of_queues_do_not_tell_causes_apart() -> None:
    """A thousand findings of a campaign had a cause for each queue of their runs."""
    said = (
        "unit 1 of consumequeue/TopicA/0/00000000000000000000 is wrong",
        "unit 7 of consumequeue/%RETRY%group/2/00000000000000000020 is wrong",
        "unit 7 of consumequeue_ext/TopicA/2/00000000000000000020 is wrong",
        "the bounds of queue ('TopicA', 0) are wrong",
        "the bounds of queue ('it is', 11) are wrong",
        "topic TopicA is unknown",
        "topic TopicB is unknown",
    )
    causes = causes_of(finding("contract-4", sentence) for sentence in said)
    assert [len(cause.findings) for cause in causes] == [2, 2, 1, 1, 1]


def test_a_page_of_a_cause_is_named_once() -> None:
    """Two runs that ended in the same case had the same page twice."""
    pages = ("a.html", "b.html", "a.html")
    (cause,) = causes_of(finding("contract-2", "a record is gone", page=page) for page in pages)
    assert cause.pages == ("a.html", "b.html")


def test_what_never_fired_is_one_cause() -> None:
    found = causes_of(
        [finding("never-fired", f"{name} never fired", "vacuous") for name in ("flip", "kill", "torn page")]
    )
    assert [(cause.sentence, len(cause.findings)) for cause in found] == [("flip never fired, and 2 more", 3)]


def test_the_gravest_comes_first_then_what_was_met_most_often() -> None:
    found = causes_of(
        [
            finding("never-fired", "x never fired", "vacuous"),
            finding("harness", "a repeat differs", "harness"),
            finding("contract-1", "one", histories=7),
            *[finding("contract-2", "two")] * 2,
            finding("odd", "something else", "strange"),
        ]
    )
    assert [cause.code for cause in found] == ["contract-2", "contract-1", "harness", "never-fired", "odd"]
    assert [cause.times for cause in found] == [2, 7, 1, 1, 1]
    assert [cause.contract for cause in found] == [2, 1, None, None, None]
    assert found[-1].tone == "other"
    assert codes_of(found)[0] == ("contract-2", 2)


def test_a_finding_says_where_it_is_and_a_token_names_its_page() -> None:
    assert Finding(image="08", file="commitlog/0", offset=7).where == "08: commitlog/0 at 7"
    assert Finding(place="/tmp/kept").where == "/tmp/kept"
    assert Finding().where == ""
    assert Finding(message="m").said == "m"
    assert page_name("tp1-9c48e35c-eNq") == "case-9c48e35c.html"
