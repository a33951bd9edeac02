"""What a recovery may make of progress files: those of the store are brought within their queues, others stay.

What they said before is read from the image, what they say now from the files after the recovery, both without the
store; how far its queues go the store is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.store import MessageStore
from tornpage.properties.contract import observed
from tornpage.properties.decode.config_files import load_config, parse_config
from tornpage.properties.judge.directory.evidence import Evidence
from tornpage.properties.judge.progress_ledger import (
    CONSUMER_OFFSETS,
    DELAY_OFFSETS,
    LIGHT_CONSUMER_OFFSETS,
    READERS,
    Said,
)
from tornpage.properties.program.log_places import ROOT

__all__ = ["badly_changed", "is_progress", "is_whole"]

_SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"


def is_progress(name: str) -> bool:
    """Whether a file below the store is JSON of progress or configuration, or the backup of one."""
    return name.startswith("config/") and name.endswith((".json", ".json.bak"))


def is_whole(content: Mapping[str, bytes], name: str) -> bool:
    """Whether a JSON file says something, or its backup does."""
    for each in (name.removesuffix(".bak"), f"{name.removesuffix('.bak')}.bak"):
        try:
            if content.get(each, b"").strip():
                parse_config(content[each])
                return True
        except ValueError:
            continue
    return False


def badly_changed(evidence: Evidence, content: Mapping[str, bytes]) -> str:
    """Return a progress file that is not what the recovery had to make of it, nothing if all are."""
    was = {name: data for name, data in evidence.seen.content.items() if is_progress(name)}
    own = {name: said for name in _own(evidence) if (said := _said(was, name)) is not None}
    for name, data in was.items():
        if name.removesuffix(".bak") not in own and content.get(name) != data:
            return name
    assert evidence.store is not None
    for name, said in own.items():
        if _said(content, name) != _within(evidence.store, name, said):
            return name
    return ""


def _own(evidence: Evidence) -> list[str]:
    """Return the progress files that a store of this shape may correct; none of a damaged one."""
    if not evidence.is_writable:
        return []
    consumers = LIGHT_CONSUMER_OFFSETS if evidence.shape.settings.light_queues else CONSUMER_OFFSETS
    is_master = evidence.shape.config.broker_role is not BrokerRole.SLAVE
    return [path.removeprefix(f"{ROOT}/") for path in (consumers, *((DELAY_OFFSETS,) if is_master else ()))]


def _said(content: Mapping[str, bytes], name: str) -> Said | None:
    """Return what a file says, its backup where it says nothing; None where neither does."""
    document = load_config(content, name)
    try:
        return None if document is None else READERS[f"{ROOT}/{name}"](document)
    except ValueError:
        return None


def _within(store: MessageStore, name: str, said: Said) -> Said:
    """Return what a file has to say once nothing lies outside of the queues; of delays, below them too."""
    assert isinstance(said, tuple)
    if f"{ROOT}/{name}" == DELAY_OFFSETS:
        bounds = (store.min_offset_in_queue, store.max_offset_in_queue)
        ranges = {level: [_asked(bound, _SCHEDULE_TOPIC, level - 1) for bound in bounds] for level, _ in said}
        return tuple((level, max(ranges[level][0], min(number, ranges[level][1]))) for level, number in said)
    return tuple((key, min(number, _asked(store.max_offset_in_queue, key[0], key[2]))) for key, number in said)


def _asked(bound: Callable[[str, int], int], topic: str, queue_id: int) -> int:
    return observed("a bound of a queue", lambda: bound(topic, queue_id))
