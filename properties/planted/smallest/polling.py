"""Of long polling: consumers that wait in the store, and who wakes them."""

from model.operations import CancelPull, Close, DeleteTopics, PullHeld, PullWhileDispatching, Put, Step
from properties.planted.smallest.program import Program
from properties.program.case import Settings
from properties.program.translation import HELD_PULLS_MAX

__all__ = ["PROGRAMS"]

REPUT, LOOK, PUT, PULL = Step(service="reput"), Step(service="pull-hold"), Put(), PullHeld()
TAGGED, WANTED = Put(properties="TAGS\x01TagA"), PullHeld(tags="TagA")
NAMES = Put(properties="INNER_MULTI_DISPATCH\x01U")
SPLIT = Put(topic="a@b")


def beside(*schedule: int) -> PullWhileDispatching:
    """Return a pull beside dispatch; a schedule counts the yield points before each switch."""
    return PullWhileDispatching(schedule=tuple(choice for before in schedule for choice in (*(0,) * before, 1)))


PROGRAMS: dict[str, Program] = {
    "lost-wake-up": (Settings(), (PUT, beside(4), LOOK)),
    "told-beforehand": (Settings(), (PUT, beside(0, 30), LOOK)),
    "any-message-ends-it": (Settings(), (WANTED, PUT, REPUT, LOOK)),
    "newest-only": (Settings(), (WANTED, TAGGED, PUT, REPUT, LOOK)),
    "named-queues-untold": (Settings(multi_dispatch=True), (PullHeld(topic="U"), NAMES, REPUT, LOOK)),
    "split-at-the-sign": (Settings(), (PullHeld(topic="a@b"), SPLIT, REPUT, LOOK)),
    "no-deadline": (Settings(), (PULL, LOOK)),
    "every-five-seconds": (Settings(), (PullHeld(hold_ms=1_000), LOOK)),
    "latest-deadline": (Settings(), (PULL, LOOK, PullHeld(hold_ms=1_000))),
    "closed-unheard": (Settings(), (PULL, Close())),
    "deletion-unheard": (Settings(), (PUT, REPUT, PULL, DeleteTopics(), LOOK)),
    "place-kept": (Settings(), (WANTED, PUT, REPUT, LOOK, DeleteTopics(), TAGGED, REPUT, LOOK)),
    "first-answer": (Settings(), (PULL, PUT, REPUT, LOOK)),
    "place-of-who-gave-up": (Settings(), (PULL, CancelPull())),
    "no-limit-of-pulls": (Settings(), (PULL,) * (HELD_PULLS_MAX + 1)),
}
