"""Judge an open after a clean exit: its proof and its findings (contracts 7 and 16).

The derived floor names the offset up to which log, queues and index were durable, with checksums. A clean exit writes
it at the end of the log. An open that rejects the floor walks the whole log. No answer shows that. So these judges read
the files before the open, and look up the proof that the store used.
"""

import os
from collections.abc import Mapping

from tornpage.impl.store import MessageStore
from tornpage.model.crash import opened
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.decode.deleted_topics import parse_deleted_topics
from tornpage.properties.decode.derived_floor import parse_derived_floor
from tornpage.properties.judge.small_files import DERIVED_FLOOR, DURABLE_FLOOR, derived_offset_in, floor_in
from tornpage.properties.lockstep.pair import Pair
from tornpage.properties.program.log_places import ROOT, log_files

__all__ = ["clean_exit_leaves_a_proof", "nothing_is_found", "owed_proof", "proof_is_used"]

_OF_PROGRESS_FILES = ("config_file_from_backup", "config_file_unreadable")
_DELETED_TOPICS = f"{ROOT}/config/deletedTopics"


def clean_exit_leaves_a_proof(pair: Pair) -> None:
    """Contract 16: a clean exit on a healthy disk leaves a floor at the end of the log."""
    files, end = pair.durable(pair.files).files, pair.log.end_offset
    bases = [int(path.rpartition("/")[2]) for path in log_files(files)]
    if pair.had_faults or pair.settings.queue_ext or not bases or end <= min(bases):
        return
    offset = derived_offset_in(files.get(DERIVED_FLOOR, b""))
    pair.cover("left_a_proof")
    if offset != end:
        raise GuaranteeBroken(16, "a clean exit has not written the derived floor", str(end), str(offset))


def owed_proof(pair: Pair) -> int | None:
    """Return the offset of the derived floor that the next open has to use, or None.

    A floor past the durable floor does not count, nor does one with files of a deleted topic. Only a store that was
    closed on a healthy disk is judged.
    """
    files = pair.durable(pair.files).files
    if not pair.closed or pair.files.rules or f"{ROOT}/abort" in files or _names_deleted_topics(files):
        return None
    offset, floor = derived_offset_in(files.get(DERIVED_FLOOR, b"")), floor_in(files.get(DURABLE_FLOOR, b""))
    bases = [int(path.rpartition("/")[2]) for path in log_files(files)]
    is_within = offset is not None and floor is not None and bool(bases) and min(bases) <= offset <= floor.offset
    return offset if is_within else None


def _names_deleted_topics(files: Mapping[str, bytes]) -> bool:
    """Return whether the derived floor names a file of a topic that was deleted.

    Return True if one of the two files is not valid.
    """
    try:
        deleted = {os.fsdecode(topic) for topic in parse_deleted_topics(files[_DELETED_TOPICS])}
        named = parse_derived_floor(files[DERIVED_FLOOR])["queue_files"]
    except ValueError:
        return True
    except KeyError:
        return False
    return any(path.split("/")[1] in deleted for path, *_ in named)


def proof_is_used(pair: Pair, owed: int | None, store: MessageStore) -> None:
    """Contract 16: an open walks the log only from the derived floor on."""
    if owed is None:
        return
    used = pair.environment.proved_from(store)
    pair.cover("used_a_proof")
    if used != owed:
        sentence = "an open after a clean exit does not use the derived floor"
        raise GuaranteeBroken(16, sentence, str(owed), str(used))


def nothing_is_found(pair: Pair, store: MessageStore) -> None:
    """Contract 7: a store that was closed on a healthy disk has no findings at the next open.

    A queue of delayed messages that an earlier open could not make may begin after the saved progress of its level.
    Then the correction of that progress is a finding. A harmed file of progress is a finding at each open until the
    progress is saved again. Stores with extensions of queues are not judged: an open may cut
    an extension that begins with units of expired messages.
    """
    is_corrected = opened(pair.log, layout=pair.layout).delays != pair.log.saved_delays
    findings = [
        each
        for each in store.findings
        if each.code not in _OF_PROGRESS_FILES and not (is_corrected and each.code == "progress_corrected")
    ]
    if findings and not (pair.had_faults or pair.memory.was_corrupted or pair.settings.queue_ext):
        finding = findings[0]
        raise GuaranteeBroken(
            7, "an open after a clean exit has a finding", "none", f"{finding.code}: {finding.message}"
        )
