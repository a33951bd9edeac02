"""The store's compiled parts, each the twin of a plain one; loaded when first used, never by importing this module.

Whoever opens a store chooses: the front door takes these, the crash lab the plain ones, since a process that forks for
kill tests must not have loaded the compiler. Where it cannot be loaded, the plain twin does the work.
"""

import logging
from functools import cache
from typing import Any, NamedTuple

from impl import batch as plain
from impl.batch import BatchFrame, EncodedBatch
from impl.batch_encoder import BatchEncoder
from impl.message import PutStatus

__all__ = ["compiled_batch_encoder"]

_LOG = logging.getLogger("tornpage.store")


class _Twins(NamedTuple):
    encode_batch: Any
    place_batch: Any


@cache
def _twins() -> _Twins:
    """Return the compiled functions, or the plain ones where Numba, its cache or the checksum cannot be had."""
    try:
        from impl.kernels import batch as compiled
    except (ImportError, RuntimeError, OSError) as error:
        _LOG.warning("compiled_parts_missing error=%r", str(error))
        return _Twins(plain.encode_batch, plain.place_batch)
    return _Twins(compiled.encode_batch, compiled.place_batch)


def _encode_batch(body: bytes, frame: BatchFrame) -> EncodedBatch | PutStatus:
    encoded: EncodedBatch | PutStatus = _twins().encode_batch(body, frame)
    return encoded


def _place_batch(encoded: EncodedBatch, **places: int) -> None:
    _twins().place_batch(encoded, **places)


def compiled_batch_encoder(**settings: Any) -> BatchEncoder:
    """Return a batch encoder whose loops are compiled; the first batch pays for loading them, about a second."""
    return BatchEncoder(**settings, encode_batch=_encode_batch, place_batch=_place_batch)
