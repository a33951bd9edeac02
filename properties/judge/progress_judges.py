"""The judges of progress files; each looks at one recovered store (contract 13 and 17).

What the files said before the open is read from the disk, what they may have said comes from the ledger, and where each
queue of the recovered log ends from the model's memory of it.
"""

from functools import partial

from tornpage.model import progress
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.judge.progress_ledger import (
    CONSUMER_OFFSETS,
    LIGHT_CONSUMER_OFFSETS,
    LegalVersions,
    said_by,
    torn_in,
)
from tornpage.properties.judge.recovered import DELETED_TOPICS, Recovered, remembered_topics
from tornpage.properties.judge.rulings import judge

__all__ = ["PROGRESS_JUDGES", "being_saved", "expected_offsets", "progress_effects"]

CONSUMER_FILES = (CONSUMER_OFFSETS, LIGHT_CONSUMER_OFFSETS)


@judge(13)
def files_are_old_or_new(found: Recovered) -> None:
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
def nobody_is_led_past(found: Recovered) -> None:
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


def expected_offsets(found: Recovered, path: str) -> progress.Offsets:
    """Return what a recovery makes of the consumer offsets it has found."""
    said = found.said_before[path]
    assert isinstance(said, tuple)
    end_offset = found.store.max_offset

    def end_of(topic: str, queue_id: int) -> int:
        return found.derived.end_of((topic, queue_id), end_offset)

    return progress.corrected(said, end_of=end_of)


def progress_effects(found: Recovered) -> set[str]:
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
