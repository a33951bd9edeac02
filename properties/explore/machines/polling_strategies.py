"""Define Hypothesis strategies of waiting consumers: queues, tags and schedules.

Some queues fill, others never do.
"""

from hypothesis import strategies as st

from tornpage.model.operations import PullHeld, PullWhileDispatching, Put

__all__ = ["held_pulls", "pulls_beside_dispatch", "tagged_puts"]

_TOPICS = ("T", "T", "a@b", "U", "%LMQ%a")
_TAGS = ("TagA", "TagA", "", "TagA||BB", "Aa")
_PROPERTIES = ("TAGS\x01TagA", "TAGS\x01BB", "", "INNER_MULTI_DISPATCH\x01%LMQ%a,U\x02TAGS\x01TagA")


def held_pulls() -> st.SearchStrategy[PullHeld]:
    """Draw pulls at or near the end of a queue, most of which wait."""
    return st.builds(
        PullHeld,
        topic=st.sampled_from(_TOPICS),
        queue_id=st.sampled_from((0, 0, 1)),
        shift=st.sampled_from((0, 0, 0, 0, -1, 1)),
        max_msg_nums=st.sampled_from((32, 1)),
        tags=st.sampled_from(_TAGS),
        hold_ms=st.sampled_from((15_000, 15_000, 1_000, 1, 0)),
    )


def tagged_puts() -> st.SearchStrategy[Put]:
    """Draw small messages, some of which match some of the held pulls."""
    return st.builds(
        Put,
        topic=st.sampled_from(_TOPICS),
        queue_id=st.sampled_from((0, 0, 1)),
        body_bytes=st.just(10),
        properties=st.sampled_from(_PROPERTIES),
    )


def pulls_beside_dispatch() -> st.SearchStrategy[PullWhileDispatching]:
    """Draw a consumer and dispatch that switch once, twice or often.

    Each switch comes after a drawn number of yield points.
    """
    once = st.tuples(st.integers(0, 60))
    twice = st.tuples(st.sampled_from((0, 0, 1, 5)), st.integers(0, 60))
    often = st.lists(st.integers(0, 15), max_size=6)
    return st.builds(
        PullWhileDispatching,
        tags=st.sampled_from(("", "", "TagA")),
        schedule=st.one_of(once, twice, often).map(
            lambda befores: tuple(choice for each in befores for choice in (*(0,) * each, 1))
        ),
    )
