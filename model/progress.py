"""Specify consumer progress in memory, on disk, and after a crash (contracts 13, 17).

1. A group commits the number that it wants next in a queue. The number counts up to the end of the readable queue. The
   last commit counts, even if it is lower than the one before. A light group has one number for each topic.
2. All progress is saved together: in a round of the service if something was committed since the last save, and at a
   clean close. The next round is due one interval after the last one, or a second later if the save failed. A poisoned
   store saves nothing.
3. A crash leaves what was saved last, or what was being saved. An offset past the end of a recovered queue is set back
   to the end, and saved as such before anything else happens.
4. Where the numbers of a topic begin at 0 again, its offsets are saved as 0 and then removed.

Source: docs/statuses.md, "progress" (`ConsumerOffsetManager`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

__all__ = [
    "ConsumerProgress",
    "Offsets",
    "QueueKey",
    "commit",
    "corrected",
    "delete_topics",
    "diff_total",
    "least_offsets",
    "loaded",
    "query",
    "save",
    "save_round",
]

LIGHT_PREFIX = "%LMQ%"
INTERVAL_MS = 5_000
PAUSE_MS = 1_000

QueueKey = tuple[str, str, int]
"""Topic, group, queue id."""

Offsets = tuple[tuple[QueueKey, int], ...]
"""Each key with the number that is wanted next, ascending by key."""

EndOf = Callable[[str, int], int]
"""The end of a queue by topic and queue id; 0 for an unknown queue."""


@dataclass(frozen=True, slots=True)
class ConsumerProgress:
    """Progress in memory (`committed`) and on disk (`saved`).

    `is_changed` says whether a save has something to write. `due_ms` is the time of the service's next save, None
    before its first round.
    """

    committed: Offsets = ()
    saved: Offsets = ()
    is_changed: bool = False
    due_ms: int | None = None


def _with(offsets: Offsets, key: QueueKey, offset: int) -> Offsets:
    return tuple(sorted({**dict(offsets), key: offset}.items()))


def _key(group: str, topic: str, queue_id: int, *, light: bool) -> QueueKey:
    return topic, group, 0 if light and group.startswith(LIGHT_PREFIX) else queue_id


def commit(
    progress: ConsumerProgress, group: str, topic: str, queue_id: int, offset: int, *, end_of: EndOf, light: bool
) -> tuple[ConsumerProgress, int]:
    """Return the progress after a commit, and the number that counts.

    `end_of` is the end of each readable queue.
    """
    key = _key(group, topic, queue_id, light=light)
    counts = min(offset, end_of(topic, key[2]))
    return replace(progress, committed=_with(progress.committed, key, counts), is_changed=True), counts


def query(
    progress: ConsumerProgress,
    group: str,
    topic: str,
    queue_id: int,
    *,
    begin: int,
    light: bool,
    is_in_disk: bool = False,
) -> int | None:
    """Return where a group goes on, None where its client has to know the place.

    Without a commit that is the first message, if the queue still begins with it (`begin`) and memory has it.
    `is_in_disk` says that memory does not.
    """
    known = dict(progress.committed).get(_key(group, topic, queue_id, light=light))
    return known if known is not None else 0 if begin <= 0 and not is_in_disk else None


def diff_total(progress: ConsumerProgress, group: str, topic: str, *, ends: Iterable[tuple[int, int]]) -> int:
    """Return how many messages a group has left in the queues of a topic.

    `ends` has (queue id, end) of each queue.
    """
    known = dict(progress.committed)
    return sum(end - known.get((topic, group, queue_id), 0) for queue_id, end in ends)


def least_offsets(
    progress: ConsumerProgress, topic: str, *, begin_of: EndOf, without: Iterable[str] = ()
) -> dict[int, int]:
    """Return by queue id the least number that a group wants and that still exists.

    The groups `without` are left out.
    """
    least: dict[int, int] = {}
    for (name, group, queue_id), offset in progress.committed:
        if name == topic and group not in without and offset >= begin_of(topic, queue_id):
            least[queue_id] = min(offset, least.get(queue_id, offset))
    return least


def save(progress: ConsumerProgress, *, sync_fails: bool = False) -> ConsumerProgress:
    """Return the progress after a save; a save whose first sync fails leaves the old one."""
    if sync_fails or not progress.is_changed:
        return progress
    return replace(progress, saved=progress.committed, is_changed=False)


def save_round(
    progress: ConsumerProgress, *, now_ms: int, poisoned: bool, sync_fails: bool = False
) -> ConsumerProgress:
    """Return the progress after a round of the service, which saves if that is due."""
    if progress.due_ms is not None and now_ms < progress.due_ms:
        return progress
    fails = sync_fails and progress.is_changed and not poisoned
    after = progress if poisoned else save(progress, sync_fails=fails)
    return replace(after, due_ms=now_ms + (PAUSE_MS if fails else INTERVAL_MS))


def loaded(saved: Offsets, *, end_of: EndOf) -> ConsumerProgress:
    """Return the progress of a store that has just opened with what was saved.

    `end_of` is the end of each recovered queue.
    """
    there = corrected(saved, end_of=end_of)
    return ConsumerProgress(committed=there, saved=there)


def corrected(offsets: Offsets, *, end_of: EndOf) -> Offsets:
    """Return the offsets, with those past the end of their queue set back to it."""
    return tuple((key, min(offset, end_of(key[0], key[2]))) for key, offset in offsets)


def delete_topics(progress: ConsumerProgress, topics: Iterable[str]) -> ConsumerProgress:
    """Return the progress after the numbers of topics begin at 0 again."""
    gone = frozenset(topics)
    if not gone:
        return progress
    zeroed = tuple((key, 0 if key[0] in gone else offset) for key, offset in progress.committed)
    left = tuple((key, offset) for key, offset in progress.committed if key[0] not in gone)
    if zeroed == progress.committed and not progress.is_changed:
        return replace(progress, committed=left, is_changed=left != zeroed)
    return replace(progress, committed=left, saved=zeroed, is_changed=True)
