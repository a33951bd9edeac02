"""Define Hypothesis strategies of settings, messages and crashes.

Everything else is in explore/machines/machine.py.
"""

from collections.abc import Sequence
from typing import TypeVar, get_args

from hypothesis import strategies as st

from tornpage.model.operations import Choice, Damage, DerivedHarm, Put
from tornpage.properties.disk.images import InFlightWrite
from tornpage.properties.program.case import Settings
from tornpage.properties.program.log_places import log_files

__all__ = ["choices_of", "damages", "holes_of", "odd_puts", "one_of", "puts", "settings_of_trials"]

Value = TypeVar("Value")

_PROPERTIES = (
    "",
    "TAGS\x01TagA",
    "KEYS\x01k1 k2\x02TAGS\x01TagA",
    "WAIT\x01false",
    "WAIT\x01FALSE\x02KEYS\x01k",
    "__CRC32#\x010123456789\x02",
    "KEYS\x01k\x02__CRC32#\x011",
    "a\x01b\x02",
    "KEYS\x01\0",
    "x" * 32_747,
    "x" * 32_748,
)
_SIZES = (40, 900, 0, 300, 1400, 2000, 3000, 3900, 812)
_TOPICS = ("T", "TopicTest", "%RETRY%group", "订单", "t" * 127, "", "a/b", "..", "n\0l", "t" * 128, "订" * 43)


def settings_of_trials() -> st.SearchStrategy[Settings]:
    """Draw small files, so that roll-overs come soon, and few files, to fill the disk."""
    return st.builds(
        Settings,
        file_bytes=st.sampled_from((16384, 4096, 1024)),
        record_bytes_max=st.sampled_from((1 << 20, 2000)),
        sync_flush=st.booleans(),
        trailer=st.sampled_from((True, False)),
        files_max=st.sampled_from((1000, 4, 2)),
        disk=st.sampled_from(("posix-strict", "journal")),
        log_paths=st.sampled_from((1, 1, 2)),
    )


def _put(
    *,
    topics: Sequence[str],
    queue_ids: Sequence[int],
    sizes: Sequence[int],
    properties: Sequence[str],
) -> st.SearchStrategy[Put]:
    return st.builds(
        Put,
        topic=one_of(topics),
        queue_id=one_of(queue_ids),
        body_bytes=one_of(sizes),
        fill=st.integers(0, 5),
        body_kind=st.sampled_from(("random", "record", "zeros")),
        properties=one_of(properties),
        sys_flag=st.sampled_from((0, 0, 0x04, 0x08, 0x0C, 0x30, 0x41)),
        flag=st.sampled_from((0, 7, -1)),
        born_v6=st.booleans(),
        store_v6=st.booleans(),
        born_now=st.sampled_from((False, False, False, True)),
        advance_ms=st.sampled_from((1, 0, 1000)),
    )


def one_of(values: Sequence[Value]) -> st.SearchStrategy[Value]:
    """Draw one of several values without Hypothesis printing them all, some of which are long."""
    return st.integers(0, len(values) - 1).map(lambda number: values[number])


def puts() -> st.SearchStrategy[Put]:
    """Draw messages that a store with room accepts."""
    return _put(topics=_TOPICS[:5], queue_ids=(0, 1, 2), sizes=_SIZES, properties=_PROPERTIES[:7])


def odd_puts() -> st.SearchStrategy[Put]:
    """Draw messages at and beyond every limit."""
    return _put(topics=_TOPICS, queue_ids=(0, -1), sizes=(0, 813, 4000, 16_200, 33_000), properties=_PROPERTIES)


def choices_of(facts: Sequence[InFlightWrite]) -> st.SearchStrategy[dict[str, Choice]]:
    """Draw what survives: some in-flight writes, all but a few, or all pages but one.

    In the last case no name survives, and the one page is lost or torn. The simplest choice is that nothing survives.
    """
    some = st.fixed_dictionaries({}, optional={fact.name: _choice(fact) for fact in facts})
    if not facts:
        return some
    latest = {fact.name: fact.alternatives - 1 for fact in facts}
    pages = [fact.name for fact in facts if fact.kind == "page"]

    def all_but(names: Sequence[str]) -> dict[str, Choice]:
        return {name: choice for name, choice in latest.items() if name not in names}

    def pages_but(page: str) -> dict[str, Choice]:
        return {name: latest[name] for name in pages if name != page}

    def pages_but_a_tear(page: str, mask: int) -> dict[str, Choice]:
        return {**pages_but(page), page: (0, latest[page], mask)}

    all_but_few = st.lists(st.sampled_from(sorted(latest)), min_size=1, max_size=2).map(all_but)
    if not pages:
        return some | all_but_few
    page = st.sampled_from(pages)
    return some | all_but_few | page.map(pages_but) | st.builds(pages_but_a_tear, page, _masks())


def holes_of(facts: Sequence[InFlightWrite]) -> st.SearchStrategy[dict[str, Choice]]:
    """Draw a page of the log that is lost or torn while everything else survives.

    Pages after it survive too. If no page of the log is in flight, draw as `choices_of` does.
    """
    pages = [fact.name for fact in facts if fact.kind == "page" and log_files([fact.name.split()[1]])]
    if not pages:
        return choices_of(facts)
    latest = {fact.name: fact.alternatives - 1 for fact in facts}

    def without(page: str) -> dict[str, Choice]:
        return {**latest, page: 0}

    def with_a_tear(page: str, mask: int) -> dict[str, Choice]:
        return {**latest, page: (0, latest[page], mask)}

    page = st.sampled_from(pages)
    return page.map(without) | st.builds(with_a_tear, page, _masks())


def _choice(fact: InFlightWrite) -> st.SearchStrategy[Choice]:
    whole: st.SearchStrategy[Choice] = st.integers(1, fact.alternatives - 1)
    if fact.kind != "page":
        return whole
    version = st.integers(0, fact.alternatives - 1)
    return whole | st.tuples(version, version, _masks())


def _masks() -> st.SearchStrategy[int]:
    """Draw which sectors of a page are of its second version: at least one, but not all."""
    return st.integers(1, 254)


def damages() -> st.SearchStrategy[Damage]:
    """Draw damage of any kind at any record."""
    return st.builds(
        Damage,
        kind=st.sampled_from(("flip", "truncate", "misdirect")),
        record=st.integers(0, 30),
        amount=st.integers(0, 1 << 17),
        beside=st.sampled_from(("", "queue", "index")),
        beside_harm=st.sampled_from(get_args(DerivedHarm)),
    )
