"""Judges of progress files (contract 13 and 17).

What the files said before the open is read from the disk, what they may have said comes from the ledger. Where a queue
of the recovered log ends comes from the model's memory of it, or from the store of an image.
"""

from collections.abc import Mapping
from functools import partial

from tornpage.impl.store import MessageStore
from tornpage.model import progress
from tornpage.model.message import SCHEDULE_TOPIC
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.decode.config_files import parse_config
from tornpage.properties.judge.evidence import DELETED_TOPICS, Evidence, name_of, remembered_topics
from tornpage.properties.judge.image_evidence import ImageEvidence, said_in
from tornpage.properties.judge.ledgers import (
    CONSUMER_OFFSETS,
    DELAY_OFFSETS,
    LIGHT_CONSUMER_OFFSETS,
    LegalVersions,
    Said,
    said_by,
    torn_in,
)
from tornpage.properties.judge.rulings import CannotTell, Ruling, broken, judge
from tornpage.properties.program.log_places import ROOT

__all__ = [
    "CONSUMER_FILES",
    "PROGRESS_JUDGES",
    "being_saved",
    "expected_offsets",
    "files_are_old_or_new",
    "is_progress",
    "nobody_is_led_past",
    "progress_effects",
    "progress_of_an_image_is_kept",
    "progress_of_an_image_is_whole",
]

CONSUMER_FILES = (CONSUMER_OFFSETS, LIGHT_CONSUMER_OFFSETS)


@judge(13)
def files_are_old_or_new(found: Evidence) -> None:
    """Contract 13: after a crash each progress file says what was saved last, or what was being saved.

    It says so itself, and its backup is whole too: that the one counts where the other is torn is no excuse.
    """
    for path, said in found.said_before.items():
        legal = found.legal_versions[path]
        if said not in legal:
            expected = " or ".join(sorted(map(str, legal)))
            name = path.rpartition("/")[2]
            raise GuaranteeBroken(13, f"{name} is neither the old version nor the new one", expected, str(said))
    for path, content in sorted(torn_in(found.files.base.files, found.said_before) - found.torn_before):
        raise GuaranteeBroken(13, f"{path.rpartition('/')[2]} is torn", "a whole document", repr(content[:64]))
    deleted = found.files.base.files.get(DELETED_TOPICS)
    if remembered_topics(deleted) is None:
        raise GuaranteeBroken(13, "the list of deleted topics is torn", "a whole list", repr(deleted))


@judge(17)
def nobody_is_led_past(found: Evidence) -> None:
    """Contract 17: no group is led past a message it has not seen, now or after the next crash.

    What lay beyond its queue is the end of it, for who asks and on the disk; everything else is what it was.
    """
    durable = said_by(found.durable.files, found.said_before)
    for path in found.said_before:
        if path not in CONSUMER_FILES:
            continue
        expected = expected_offsets(found, path)
        if durable[path] != expected:
            sentence = "the consumer offsets on disk are not those that the recovered queues allow"
            raise GuaranteeBroken(17, sentence, str(expected), str(durable[path]))
        answers = tuple(
            (key, observed("query_offset", partial(found.store.query_offset, key[1], key[0], key[2])))
            for key, _ in expected
        )
        if answers != expected:
            raise GuaranteeBroken(17, "a group goes on elsewhere than its file says", str(expected), str(answers))


def expected_offsets(found: Evidence, path: str) -> progress.Offsets:
    """Return what a recovery makes of the consumer offsets it has found."""
    said = found.said_before[path]
    assert isinstance(said, tuple)
    return progress.corrected(said, end_of=lambda topic, queue_id: found.end_of_queue((topic, queue_id)))


@judge(13)
def progress_of_an_image_is_kept(evidence: ImageEvidence) -> Ruling | None:
    """Contract 13: a recovery brings progress files of the store within their queues, and leaves all others alone.

    It is compared with the image: no save was seen that `files_are_old_or_new` could compare it with. A file that was
    torn in the image already is left alone, and whether it may be torn is unknown.
    """
    was = {name: data for name, data in evidence.seen.content.items() if is_progress(name)}
    for where, content in (("", evidence.content), (" on the disk", evidence.durable_content)):
        changed = _badly_changed(evidence, was, content)
        if changed:
            return broken(13, f"recovery changed{where} what a file says", file=changed)
    return None


@judge(13)
def progress_of_an_image_is_whole(evidence: ImageEvidence) -> None:
    """Contract 13: each progress file says something; of one that the image has torn it is unknown who tore it."""
    was = {name: data for name, data in evidence.seen.content.items() if is_progress(name)}
    torn = next((name for name in sorted(was) if not _is_whole(was, name)), "")
    if torn:
        raise CannotTell(f"{torn} was not whole in the image already, nor is its backup; recovery left it alone")


def is_progress(name: str) -> bool:
    """Whether a file below the store is JSON of progress or configuration, or the backup of one."""
    return name.startswith("config/") and name.endswith((".json", ".json.bak"))


def _is_whole(content: Mapping[str, bytes], name: str) -> bool:
    """Whether a JSON file says something, or its backup does."""
    for each in (name.removesuffix(".bak"), f"{name.removesuffix('.bak')}.bak"):
        try:
            if content.get(each, b"").strip():
                parse_config(content[each])
                return True
        except ValueError:
            continue
    return False


def _badly_changed(evidence: ImageEvidence, was: Mapping[str, bytes], content: Mapping[str, bytes]) -> str:
    """Return a progress file that is not what the recovery had to make of it, nothing if all are."""
    own = evidence.said_before
    names = {name_of(path) for path in own}
    for name, data in was.items():
        if name.removesuffix(".bak") not in names and content.get(name) != data:
            return name
    files = {f"{ROOT}/{name}": data for name, data in content.items() if is_progress(name)}
    for path, said in own.items():
        expected = _within_bounds(evidence.store, said) if path == DELAY_OFFSETS else expected_offsets(evidence, path)
        if said_in(files, path) != expected:
            return name_of(path)
    return ""


def _within_bounds(store: MessageStore, said: Said) -> Said:
    """Return saved progress of delay levels, none outside of its queue."""
    assert isinstance(said, tuple)
    bounds = (store.min_offset_in_queue, store.max_offset_in_queue)
    found = []
    for level, number in said:
        first, end = (observed("a bound of a queue", partial(bound, SCHEDULE_TOPIC, level - 1)) for bound in bounds)
        found.append((level, max(first, min(number, end))))
    return tuple(found)


def progress_effects(found: Evidence) -> set[str]:
    """Return what the recovery met, as an activation table counts it: a saved file, an offset that had to be brought
    back.
    """
    effects = {"progress_saved"} if any(found.said_before.values()) else set()
    if any(expected_offsets(found, path) != said for path, said in found.said_before.items() if path in CONSUMER_FILES):
        effects.add("progress_corrected")
    return effects


def being_saved(versions: LegalVersions) -> frozenset[str]:
    """Return the same of what each file may say: one of two versions, when a crash falls into a save."""
    return frozenset({"progress_being_saved"} if any(len(legal) > 1 for legal in versions.values()) else ())


PROGRESS_JUDGES = (files_are_old_or_new, nobody_is_led_past)
"""In the order in which they speak."""
