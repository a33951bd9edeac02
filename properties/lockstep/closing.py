"""Flush and close, compared with the model, and a second process that opens the open store."""

from impl.errors import StoreInUse
from model import flushing
from model.progress import save
from properties.contract import GuaranteeBroken, observed
from properties.disk.journal import DirectorySynced
from properties.judge.judges import ROOT
from properties.judge.progress_ledger import DELAY_OFFSETS, said_by
from properties.lockstep.compare import clean_exit_is_durable, compare_watermarks
from properties.lockstep.pair import Pair
from properties.lockstep.services import answer_all

__all__ = ["close", "flush", "open_twice"]


def flush(pair: Pair) -> None:
    """Flush a store that is open; a failed sync, or a commit that fails, is answered as such and moves nothing."""
    if pair.closed:
        return
    first = len(pair.files.events)
    after, durable = flushing.flush(
        pair.log, sync_fails=bool(pair.files.failing_syncs), write_fails=bool(pair.files.failing_writes)
    )
    result = observed("flush", pair.store.flush)
    if result.durable != durable:
        raise GuaranteeBroken(9, "a flush answers otherwise than the model", str(durable), str(result.durable))
    pair.cover("sync_failed_under_flush()", after.poisoned and not pair.log.poisoned)
    pair.end_operation(first, after)
    compare_watermarks(pair)


def close(pair: Pair) -> None:
    """Close, cleanly or as a store closes whose disk fails; nobody waits any longer, and nothing may leak."""
    if pair.closed:
        return
    first = len(pair.files.events)
    after, clean = flushing.close(
        pair.log, sync_fails=bool(pair.files.failing_syncs), write_fails=bool(pair.files.failing_writes)
    )
    if not after.poisoned:
        pair.files.failing_syncs = 0  # what it would hit is no sync of the log
    pair.files.refused_files = 0
    observed("close", pair.store.close)
    pair.closed = True
    if clean:
        pair.consumers = save(pair.consumers)
    answer_all(pair, after)
    pair.cover("sync_failed_under_close()", after.poisoned and not pair.log.poisoned)
    pair.cover("unclean_for_a_commit", not clean and not after.poisoned)
    pair.end_operation(first, after)
    pair.note_committed()
    if pair.files.leaks():
        raise GuaranteeBroken(11, "a closed store still holds files", "nothing", "; ".join(pair.files.leaks()))
    if clean and pair.queue_sync_failed:  # a file that failed may have been the checkpoint, which is written anew
        clean = pair.store.read_only_reason is None
    if clean != (pair.store.read_only_reason is None):
        reason = str(pair.store.read_only_reason)
        raise GuaranteeBroken(2, "a close says otherwise than the model whether it was clean", str(clean), reason)
    if clean:
        clean_exit_is_durable(pair)
    elif f"{ROOT}/abort" not in pair.durable(pair.files).files:
        raise GuaranteeBroken(2, "an exit that was not clean has removed its abort marker")
    _delay_offsets_are_saved(pair)


def _delay_offsets_are_saved(pair: Pair) -> None:
    """Contract 12: after a clean exit the progress of delay levels on disk is exact."""
    if pair.store.read_only_reason is not None or pair.layout.role == "SLAVE":
        return
    saved = said_by(pair.durable(pair.files).files, (DELAY_OFFSETS,))[DELAY_OFFSETS]
    if saved != pair.log.delays:
        sentence = "a clean exit has not saved which delayed messages were delivered"
        raise GuaranteeBroken(12, sentence, str(pair.log.delays), str(saved))


def open_twice(pair: Pair) -> None:
    """Have somebody else open the store that is open: refused, and nothing was touched (contract 14)."""
    if pair.closed:
        return
    pair.files.mark("another opener")
    before = len(pair.files.journal)
    try:
        pair.open_beside()
    except StoreInUse:
        if all(isinstance(entry, DirectorySynced) for entry in pair.files.journal[before:]):
            return
        raise GuaranteeBroken(14, "a second opener is refused and has touched the disk already") from None
    except Exception as error:
        raise GuaranteeBroken(14, "a second opener is not told that the store is open", found=str(error)) from error
    raise GuaranteeBroken(14, "a second opener is let in")
