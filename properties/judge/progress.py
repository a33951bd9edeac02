"""Judge progress files (contract 13 and 17).

Their versions before the open are read from the disk; the legal versions come from the ledger. The end of a queue of
the recovered log comes from the model's ledger, or from the store of an image.
"""

from collections.abc import Mapping
from functools import partial

from tornpage.impl.store import MessageStore
from tornpage.model import progress
from tornpage.model.message import SCHEDULE_TOPIC
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.decode.config_files import parse_config
from tornpage.properties.judge.evidence import DELETED_TOPICS, Evidence, name_of, remembered_topics
from tornpage.properties.judge.image_evidence import ImageEvidence, version_in
from tornpage.properties.judge.ledgers import (
    CONSUMER_OFFSETS,
    DELAY_OFFSETS,
    LIGHT_CONSUMER_OFFSETS,
    LegalVersions,
    SavedVersion,
    torn_in,
    version_text,
    versions_in,
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
    """Contract 13: each progress file has the version saved last or the one being saved.

    The file and its backup are both whole: a whole backup does not excuse a torn file.
    """
    for path, version in found.versions_before.items():
        legal = found.legal_versions[path]
        if version not in legal:
            expected = " or ".join(sorted(map(version_text, legal)))
            name = path.rpartition("/")[2]
            raise GuaranteeBroken(
                13, f"{name} is neither the old version nor the new one", expected, version_text(version)
            )
    for path, content in sorted(torn_in(found.files.base.files, found.versions_before) - found.torn_before):
        raise GuaranteeBroken(13, f"{path.rpartition('/')[2]} is torn", "a whole document", repr(content[:64]))
    deleted = found.files.base.files.get(DELETED_TOPICS)
    if remembered_topics(deleted) is None:
        raise GuaranteeBroken(13, "the list of deleted topics is torn", "a whole list", repr(deleted))


@judge(17)
def nobody_is_led_past(found: Evidence) -> None:
    """Contract 17: no group is led past an unseen message, now or after the next crash.

    A committed offset past the end of its queue becomes that end, in answers and on the disk; all others are unchanged.
    """
    durable = versions_in(found.durable.files, found.versions_before)
    for path in found.versions_before:
        if path not in CONSUMER_FILES:
            continue
        expected = expected_offsets(found, path)
        if durable[path] != expected:
            sentence = "the consumer offsets on disk are not those that the recovered queues allow"
            raise GuaranteeBroken(17, sentence, version_text(expected), version_text(durable[path]))
        answers = tuple(
            (key, observed("query_offset", partial(found.store.query_offset, key[1], key[0], key[2])))
            for key, _ in expected
        )
        if answers != expected:
            sentence = "a group continues at another offset than its file has"
            raise GuaranteeBroken(17, sentence, version_text(expected), version_text(answers))


def expected_offsets(found: Evidence, path: str) -> progress.Offsets:
    """Return what a recovery has to make of the consumer offsets that were on the disk."""
    version = found.versions_before[path]
    assert isinstance(version, tuple)
    return progress.corrected(version, end_of=lambda topic, queue_id: found.end_of_queue((topic, queue_id)))


@judge(13)
def progress_of_an_image_is_kept(evidence: ImageEvidence) -> Ruling | None:
    """Contract 13: recovery limits progress files to their queues, and changes no others.

    The comparison is with the image, because no save was recorded for `files_are_old_or_new`. A file that was torn in
    the image is left alone, and whether it may be torn is unknown.
    """
    was = {name: data for name, data in evidence.seen.content.items() if is_progress(name)}
    for where, content in (("", evidence.content), (" on the disk", evidence.durable_content)):
        changed = _badly_changed(evidence, was, content)
        if changed:
            return broken(13, f"recovery changed the content of a file{where}", file=changed)
    return None


@judge(13)
def progress_of_an_image_is_whole(evidence: ImageEvidence) -> None:
    """Contract 13: each progress file is readable.

    Unknown if the image has a torn one, because it does not show the cause.
    """
    was = {name: data for name, data in evidence.seen.content.items() if is_progress(name)}
    torn = next((name for name in sorted(was) if not _is_whole(was, name)), "")
    if torn:
        raise CannotTell(f"neither {torn} nor its backup was whole in the image; recovery left them alone")


def is_progress(name: str) -> bool:
    """Whether a file is JSON of progress or configuration, or the backup of such a file."""
    return name.startswith("config/") and name.endswith((".json", ".json.bak"))


def _is_whole(content: Mapping[str, bytes], name: str) -> bool:
    """Whether a JSON file or its backup is readable."""
    for each in (name.removesuffix(".bak"), f"{name.removesuffix('.bak')}.bak"):
        try:
            if content.get(each, b"").strip():
                parse_config(content[each])
                return True
        except ValueError:
            continue
    return False


def _badly_changed(evidence: ImageEvidence, was: Mapping[str, bytes], content: Mapping[str, bytes]) -> str:
    """Return a progress file that recovery changed wrongly; empty if there is none."""
    own = evidence.versions_before
    names = {name_of(path) for path in own}
    for name, data in was.items():
        if name.removesuffix(".bak") not in names and content.get(name) != data:
            return name
    files = {f"{ROOT}/{name}": data for name, data in content.items() if is_progress(name)}
    for path, version in own.items():
        expected = (
            _within_bounds(evidence.store, version) if path == DELAY_OFFSETS else expected_offsets(evidence, path)
        )
        if version_in(files, path) != expected:
            return name_of(path)
    return ""


def _within_bounds(store: MessageStore, version: SavedVersion) -> SavedVersion:
    """Return saved progress of delay levels, limited to the bounds of their queues."""
    assert isinstance(version, tuple)
    bounds = (store.min_offset_in_queue, store.max_offset_in_queue)
    found = []
    for level, number in version:
        first, end = (observed("a bound of a queue", partial(bound, SCHEDULE_TOPIC, level - 1)) for bound in bounds)
        found.append((level, max(first, min(number, end))))
    return tuple(found)


def progress_effects(found: Evidence) -> set[str]:
    """Return the coverage points of a recovery.

    They are a saved progress file, and an offset that was limited to its queue.
    """
    effects = {"progress_saved"} if any(found.versions_before.values()) else set()
    if any(
        expected_offsets(found, path) != version
        for path, version in found.versions_before.items()
        if path in CONSUMER_FILES
    ):
        effects.add("progress_corrected")
    return effects


def being_saved(versions: LegalVersions) -> frozenset[str]:
    """Return the coverage point of a crash during a save.

    A file may then have one of two versions.
    """
    return frozenset({"progress_being_saved"} if any(len(legal) > 1 for legal in versions.values()) else ())


PROGRESS_JUDGES = (files_are_old_or_new, nobody_is_led_past)
"""In the order in which they run."""
