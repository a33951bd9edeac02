"""Bugs around the extension of consume queues, whose addresses stand where tags codes do (RMQ-B42 and 4.9.3)."""

from functools import partial

from impl.components import Components
from impl.consume_queue import ConsumeQueue
from impl.dispatching import ExtDraft
from impl.queue_pull import Pull
from impl.queue_reads import QueueReads
from impl.units import Unit

__all__ = ["BUGS"]


class _NegativeIsAnAddress(Pull):
    """Every negative tags code is taken for an address, and lets its message pass (RMQ-B42)."""

    __slots__ = ()

    def _wants_unit(self, code: int) -> bool:
        return super()._wants_unit(min(code, -(1 << 31) - 1) if code < 0 else code)


class _AddressIsBelieved(ConsumeQueue):
    """An address counts, whether or not the extension has anything there (hole C17)."""

    def _is_kept(self, stored: Unit, draft: ExtDraft) -> bool:
        return True


BUGS = (
    ("RMQ-B42", "a negative tags code is taken for an address and passes every filter", 17,
     Components(queue_reads=partial(QueueReads, pull=_NegativeIsAnAddress))),
    ("extension-believed", "a unit keeps the address of an extension unit that is gone", 4,
     Components(consume_queue=_AddressIsBelieved)),
)  # fmt: skip
