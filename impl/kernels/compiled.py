"""The store's compiled parts, each the twin of a plain one.

Loaded at first use, not by importing this module. The opener of a store chooses. The front door uses these. The crash
lab uses the plain ones, since a process that forks for kill tests must not have loaded the compiler. If it cannot be
loaded, the plain twin is used.
"""

import logging
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from tornpage.impl.dispatch import dispatch_records
from tornpage.impl.index import index_entries
from tornpage.impl.index.index_entries import PLAIN_ENTRIES, IndexEntries
from tornpage.impl.log import scan
from tornpage.impl.log.scan import RecordChecker
from tornpage.impl.message import batch
from tornpage.impl.message.batch import BatchFrame, EncodedBatch
from tornpage.impl.message.batch_encoder import BatchEncoder
from tornpage.impl.message.dispatching import Dispatched, DispatchRules
from tornpage.impl.message.key_hash import key_hash
from tornpage.impl.message.message import PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.read import confirming
from tornpage.impl.read.confirming import Confirmed, Wanted

__all__ = ["CompiledParts", "compiled_batch_encoder", "compiled_parts", "load_compiled_parts"]

_LOG = logging.getLogger("tornpage.store")

_PLAIN: dict[str, Any] = {
    "batch": batch,
    "walk": scan,
    "dispatch": dispatch_records,
    "index": index_entries,
    "confirm": confirming,
    "keyed": SimpleNamespace(key_hash=key_hash, confirm_key=confirming.confirm_key),
}

_RECORDS_WORTH_LOADING = 20_000
"""The plain parts take a quarter of a second for so many records; loading the compiled ones takes a second."""


@cache
def _twins(name: str) -> Any:
    """Return a module of compiled functions, or the plain one.

    The plain one is used if Numba, its cache or the checksum is missing. A KeyError comes from a Numba that does not
    know an option of `impl.kernels.compiling`.
    """
    try:
        return import_module(f"tornpage.impl.kernels.{name}")
    except (ImportError, RuntimeError, OSError, KeyError) as error:
        _LOG.warning("compiled_parts_missing name=%s error=%r", name, str(error))
        return _PLAIN[name]


def load_compiled_parts() -> bool:
    """Load all compiled parts, for a process that has to answer in time later.

    It takes about a second of processor time. Return False if a plain part is used instead of one of them.
    """
    loaded = {name: _twins(name) for name in _PLAIN}  # one that is missing keeps none of the others from loading
    return all(loaded[name] is not plain for name, plain in _PLAIN.items())


def _encode_batch(body: bytes, frame: BatchFrame) -> EncodedBatch | PutStatus:
    encoded: EncodedBatch | PutStatus = _twins("batch").encode_batch(body, frame)
    return encoded


def _place_batch(encoded: EncodedBatch, **places: int) -> None:
    _twins("batch").place_batch(encoded, **places)


def compiled_batch_encoder(**settings: Any) -> BatchEncoder:
    """Return a batch encoder with compiled loops.

    The first batch waits about a second for loading them.
    """
    return BatchEncoder(**settings, encode_batch=_encode_batch, place_batch=_place_batch)


class CompiledParts:
    """Walk, dispatch and index loops of one store.

    They are plain at first, so that small stores open fast. After `records_worth_loading` records, or in a process that
    has loaded them before, they are compiled.
    """

    def __init__(self, *, records_worth_loading: int = _RECORDS_WORTH_LOADING) -> None:
        self._records_left = 0 if _twins.cache_info().currsize else records_worth_loading
        self.index_entries = IndexEntries(self._put_entries, self._match_entries, self._trace_entries)

    def _count_records(self, records: int) -> None:
        self._records_left -= records  # threads may lose a count, which delays the loading a little

    def _part(self, name: str) -> Any:
        """Return the module in use now."""
        return _PLAIN[name] if self._records_left > 0 else _twins(name)

    def walk_log(
        self, view: memoryview, position: int, *, file_bytes: int, base_offset: int, check: RecordChecker
    ) -> tuple[int, str | None]:
        """Walk as `impl.log.scan.walk_log` does."""
        while self._records_left > 0:
            size, reason = check(view, position, limit=file_bytes, offset=base_offset + position)
            if not size:
                return position, reason
            position += size
            self._count_records(1)
        walked: tuple[int, str | None] = _twins("walk").walk_log(
            view, position, file_bytes=file_bytes, base_offset=base_offset, check=check
        )
        return walked

    def dispatch_records(self, view: memoryview, position: int, end: int, rules: DispatchRules) -> Dispatched:
        """Dispatch as `impl.dispatch.dispatch_records.dispatch_records` does."""
        dispatched: Dispatched = self._part("dispatch").dispatch_records(view, position, end, rules)
        self._count_records(dispatched.records)
        return dispatched

    def confirm_units(self, wanted: Wanted) -> Confirmed:
        """Confirm as `impl.read.confirming.confirm_units` does."""
        confirmed: Confirmed = self._part("confirm").confirm_units(wanted)
        self._count_records(confirmed.records)
        return confirmed

    def key_hash(self, topic: str, key: str) -> int:
        """Return what `impl.message.key_hash.key_hash` does."""
        code: int = self._part("keyed").key_hash(topic, key)
        return code

    def confirm_key(self, *arguments: Any) -> tuple[int, int]:
        """Confirm as `impl.read.confirming.confirm_key` does."""
        confirmed: tuple[int, int] = self._part("keyed").confirm_key(*arguments)
        return confirmed

    def _put_entries(self, *arguments: Any) -> tuple[int, int, int]:
        put: tuple[int, int, int] = self._part("index").put_entries(*arguments)
        return put

    def _match_entries(self, *arguments: Any) -> tuple[int, int, int, int]:
        matched: tuple[int, int, int, int] = self._part("index").match_entries(*arguments)
        return matched

    def _trace_entries(
        self, heads: memoryview, entries: memoryview, number: int, end_number: int, *offsets: int
    ) -> tuple[int, int]:
        self._count_records(end_number - number)  # before the call, since no other part has counted these records
        traced: tuple[int, int] = self._part("index").trace_entries(heads, entries, number, end_number, *offsets)
        return traced


def compiled_parts() -> Parts:
    """Return all compiled parts of one store."""
    compiled = CompiledParts()
    return Parts(
        {
            BatchEncoder: compiled_batch_encoder,
            scan.walk_log: compiled.walk_log,
            dispatch_records.dispatch_records: compiled.dispatch_records,
            confirming.confirm_units: compiled.confirm_units,
            confirming.confirm_key: compiled.confirm_key,
            key_hash: compiled.key_hash,
            PLAIN_ENTRIES: compiled.index_entries,
        }
    )
