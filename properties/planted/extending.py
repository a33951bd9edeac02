"""Bugs around the extension of consume queues, whose addresses stand where tags codes do (RMQ-B42 and 4.9.3)."""

from functools import partial

from impl.consume_queue import ConsumeQueue
from impl.consume_queue_ext import ConsumeQueueExt
from impl.dispatching import ExtDraft, QueueRun
from impl.parts import Parts
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


class _OneTimeForAll(ConsumeQueue):
    """Extension units that are written at once have the store time of the first one, and any time will do."""

    def _with_addresses(self, run: QueueRun) -> bytes:
        first = run.ext[0].store_timestamp
        return super()._with_addresses(run._replace(ext=[each._replace(store_timestamp=first) for each in run.ext]))

    def _is_kept(self, stored: Unit, draft: ExtDraft) -> bool:
        assert self.ext is not None
        found = self.ext.get(stored.tags_code)
        return super()._is_kept(stored, draft if found is None else draft._replace(store_timestamp=found[1]))


class _BitMapOfTheOneBefore(ConsumeQueueExt):
    """A message that passes no filter has the bit map of the one before it."""

    _before = b""

    def put(self, draft: ExtDraft) -> int:
        self._before = draft.bit_map or self._before
        return super().put(draft._replace(bit_map=self._before))


class _KnownByItsTag(ConsumeQueue):
    """After a clean exit an extension unit stays whose tags code fits, whatever message it is of."""

    def _is_kept(self, stored: Unit, draft: ExtDraft) -> bool:
        found = self.ext.get(stored.tags_code) if self.ext is not None else None
        return found is not None and found.tags_code == draft.tags_code


BUGS = (
    ("RMQ-B42", "a negative tags code is taken for an address and passes every filter", 17,
     Parts({QueueReads: partial(QueueReads, pull=_NegativeIsAnAddress)})),
    ("extension-believed", "a unit keeps the address of an extension unit that is gone", 4,
     Parts({ConsumeQueue: _AddressIsBelieved})),
    ("one-store-time", "extension units that are written at once have one store time", 4,
     Parts({ConsumeQueue: _OneTimeForAll})),
    ("bit-map-of-another", "the extension gives a message that passes no filter the bit map of the one before", 4,
     Parts({ConsumeQueueExt: _BitMapOfTheOneBefore})),
    ("known-by-its-tag", "an extension unit stays whose tags code fits, whatever message it is of", 4,
     Parts({ConsumeQueue: _KnownByItsTag})),
)  # fmt: skip
