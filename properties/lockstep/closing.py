"""Compare flush, close and a second open of the open store with the model."""

from tornpage.impl.errors import StoreClosed, StoreInUse
from tornpage.model.answers import Answer
from tornpage.model.operations import Close, Flush
from tornpage.model.step import EndedPulls, step
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.journal import DirectorySynced
from tornpage.properties.judge.ledgers import DELAY_OFFSETS, version_text, versions_in
from tornpage.properties.lockstep.after_the_end import child_is_refused, closed_store_refuses
from tornpage.properties.lockstep.compare import clean_exit_is_durable, compare_watermarks, legal_outcome
from tornpage.properties.lockstep.execute import answered_puts
from tornpage.properties.lockstep.pair import Pair
from tornpage.properties.lockstep.proofs import clean_exit_leaves_a_proof
from tornpage.properties.lockstep.puts import note_answers
from tornpage.properties.program.log_places import ROOT

__all__ = ["close", "flush", "open_twice"]


def flush(pair: Pair) -> None:
    """Flush an open store.

    A failed sync or commit is answered as failed and moves no watermark.
    """
    if pair.closed:
        return
    first, before = len(pair.files.events), pair.begin(Flush())
    found = Answer(durable=observed("flush", pair.store.flush).durable, faults=pair.faults_left())
    after, _ = legal_outcome(pair, before, Flush(), found)
    pair.cover("sync_failed_under_flush()", after.log.poisoned and not before.log.poisoned)
    pair.end_operation(first, after)
    compare_watermarks(pair)


def close(pair: Pair) -> None:
    """Close the store, and compare how it ends.

    The close is clean, or what it is on a failing disk. Every wait ends, and nothing may leak.
    """
    if pair.closed:
        return
    first, before = len(pair.files.events), pair.begin(Close())
    observed("close", pair.store.close)
    found = Answer(ended=answered_puts(pair), ended_pulls=_closed(pair), faults=pair.faults_left())
    after, expected = legal_outcome(pair, before, Close(), found)
    pair.cover("answered_by_close", note_answers(pair, expected))
    pair.cover("held_pull_closed", len(pair.clients.pulls))
    pair.clients.pulls = {}
    pair.cover("sync_failed_under_close()", after.log.poisoned and not before.log.poisoned)
    pair.cover("unclean_for_a_commit", not expected.clean and not after.log.poisoned)
    pair.end_operation(first, after)
    pair.note_committed()
    if pair.files.leaks():
        raise GuaranteeBroken(11, "a closed store still holds files", "nothing", "; ".join(pair.files.leaks()))
    clean, reason = expected.clean, pair.store.read_only_reason
    legal = {answer.clean for _, answer in step(before, Close(), pair.layout)}
    if (reason is None) not in legal:
        sentence = "the store and the model differ on whether a close was clean"
        raise GuaranteeBroken(2, sentence, str(clean), str(reason))
    if reason is None:
        clean_exit_is_durable(pair)
        clean_exit_leaves_a_proof(pair)
        _lock_has_its_content(pair)
    elif f"{ROOT}/abort" not in pair.durable(pair.files).files:
        raise GuaranteeBroken(2, "an exit that was not clean has removed its abort marker")
    _delay_offsets_are_saved(pair)
    closed_store_refuses(pair.store)


def _lock_has_its_content(pair: Pair) -> None:
    """Contract 14: the lock file holds what RocketMQ writes into it.

    Source: docs/format.md, section 7.
    """
    content = pair.files.peek(f"{ROOT}/lock", 0, 16)
    if content != b"lock":
        raise GuaranteeBroken(14, "the lock file has another content than that of RocketMQ", "lock", repr(content))


def _closed(pair: Pair) -> EndedPulls:
    """Return the number of each pull that a close has ended."""
    done = ((number, answer) for number, answer in pair.clients.pulls.items() if answer.done())
    return tuple((number, "closed") for number, answer in done if isinstance(answer.exception(), StoreClosed))


def _delay_offsets_are_saved(pair: Pair) -> None:
    """Contract 12: after a clean exit the progress of delay levels on disk is exact."""
    if pair.store.read_only_reason is not None or pair.layout.role == "SLAVE":
        return
    saved = versions_in(pair.durable(pair.files).files, (DELAY_OFFSETS,))[DELAY_OFFSETS]
    if saved != pair.log.delays:
        sentence = "a clean exit has not saved which delayed messages were delivered"
        raise GuaranteeBroken(12, sentence, version_text(pair.log.delays), version_text(saved))


def open_twice(pair: Pair) -> None:
    """Contract 14: a second open of the open store fails and changes nothing.

    A forked child is refused.
    """
    if pair.closed:
        return
    child_is_refused(pair.store)
    pair.files.mark("another opener")
    before = len(pair.files.journal)
    try:
        pair.open_beside()
    except StoreInUse:
        if all(isinstance(entry, DirectorySynced) for entry in pair.files.journal[before:]):
            return
        raise GuaranteeBroken(14, "a second open changed the disk before it failed") from None
    except Exception as error:
        sentence = "a second open fails for another reason than the open store"
        raise GuaranteeBroken(14, sentence, found=str(error)) from error
    raise GuaranteeBroken(14, "a second open succeeds")
