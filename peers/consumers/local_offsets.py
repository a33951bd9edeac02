"""Drawn changes of local offsets, and the bytes of `offsets.json` after each.

A case has the file and its backup as they were before, each with offsets, invalid or missing. Then offsets are updated
and stored. Compared are the bytes of the file, those of its backup, and the offsets that the next start reads.

Source: `impl/consumer/offset_store.py`, `LocalFileOffsetStore`.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any

from tornpage.impl.consumer.client import Client
from tornpage.impl.consumer.offset_store import LocalOffsets
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.settings import ConsumerSettings, MessageModel
from tornpage.impl.parts import Parts
from tornpage.peers.consumers.suites import Case, Suite
from tornpage.properties.disk.compare import CompareTracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.recording_files import RecordingFiles

__all__ = ["LOCAL_OFFSETS", "OFFSET_FILES_DRAWN"]

OFFSET_FILES_DRAWN = 1_000
_CHUNK = 50
_INVALID = ("{", "", "[1", '{"offsetTable":7}', "\x00\x00")
_TEXTS = ("T", "broker-a", "b", "%RETRY%g", 'quote"d', "back\\slash", "é中", "\U0001f600", "a/b", "tab\t", "<&>'")
_ENTRY = re.compile(r'(\{\n\t\t\t"brokerName":.*?\n\t\t\}):(\d+)(?=,\{|\n)', re.DOTALL)
_SETTINGS = ConsumerSettings(consumer_group="group", client_id="client", message_model=MessageModel.BROADCASTING)
_DIRECTORIES = frozenset({"/offsets", "/offsets/client", "/offsets/client/group"})
_PATH = "/offsets/client/group/offsets.json"

Row = list[Any]
"""Topic, broker, queue id, offset, and whether the update may only raise the offset."""


@lru_cache(maxsize=2)
def files_of(seed: int, chunk: int) -> tuple[Case, ...]:
    """Return drawn cases."""
    random = Random(f"local offsets {seed} {chunk}")
    return tuple(_drawn(random) for _ in range(_CHUNK))


def _drawn(random: Random) -> Case:
    every = [[random.choice(_TEXTS), random.choice(_TEXTS), random.randrange(12)] for _ in range(random.randint(1, 8))]
    queues = [list(queue) for queue in dict.fromkeys(map(tuple, every))]
    rows = [
        [*random.choice(queues), random.randrange(1 << 40), random.random() < 0.5] for _ in range(random.randint(0, 9))
    ]
    case: Case = {"queues": queues, "rows": rows, "file": None, "backup": None}
    for name, share in (("file", 0.5), ("backup", 0.3)):
        if random.random() < share:
            known = random.sample(queues, random.randint(1, len(queues)))
            table = [[*queue, random.randrange(1 << 20)] for queue in known]
            case[name] = random.choice(_INVALID) if random.random() < 0.3 else _text(table)
    if random.random() < 0.1:
        case["queues"] = queues[: max(1, len(queues) // 2)]
    return case


def _text(table: Sequence[Sequence[Any]]) -> str:
    """Return the file of some offsets in the order given.

    A row has topic, broker, queue id and offset.
    """
    entries = [
        f'{{\n\t\t\t"brokerName":{_quoted(broker)},\n\t\t\t"queueId":{queue_id},\n\t\t\t"topic":{_quoted(topic)}\n\t\t}}'
        f":{offset}"
        for topic, broker, queue_id, offset in table
    ]
    return '{\n\t"offsetTable":{' + ",".join(entries) + ("\n\t}\n}" if entries else "}\n}")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


# ---- ours ------------------------------------------------------------------------------------------------------------


def _ours(case: Case) -> dict[str, Any]:
    texts = {_PATH: case["file"], f"{_PATH}.bak": case["backup"]}
    found = {path: text.encode() for path, text in texts.items() if text is not None}
    files = RecordingFiles(Image(_DIRECTORIES, found), tracker=CompareTracker())
    offsets = _opened(files)
    for topic, broker, queue_id, offset, increase_only in case["rows"]:
        offsets.update(MessageQueue(topic, broker, queue_id), offset, increase_only=increase_only)
    offsets.persist_all((), 0)
    again = _opened(files)
    read = [again.get(MessageQueue(*queue)) for queue in case["queues"]]
    return {
        "file": _stored(files, _PATH),
        "backup": _stored(files, f"{_PATH}.bak"),
        "read": [-1 if offset is None else offset for offset in read],
    }


def _opened(files: RecordingFiles) -> LocalOffsets:
    return LocalOffsets(Client(_SETTINGS, {}, incarnation="1", parts=Parts()), files, "/offsets")


def _stored(files: RecordingFiles, path: str) -> str | None:
    if files.stat(path) is None:
        return None
    file = files.open(path, writable=False)
    content = files.read(file, 0, 1 << 20)
    files.close(file)
    return content.decode()


# ---- differences -----------------------------------------------------------------------------------------------------


RULES: Mapping[str, str] = {
    "order": "Java writes the queues in the order of its hash table, ours sorted; the bytes of the entries are equal",
    "unchanged": "Java rewrites the file if no offset has changed, ours does not",
    "backup": "Java keeps the last file as the backup, also if it was invalid; ours keeps the last valid one",
    "unreadable": "without a valid file Java does not start on an invalid backup; ours begins without "
    "offsets, with a finding",
    "kept": "Java writes the queues of this moment only; ours keeps the offsets of other queues",
}


def _mended(case: Case, java: dict[str, Any], applied: Counter[str]) -> dict[str, Any]:
    """Return the answer that ours has to give, and count the rules that changed it.

    A rule is applied only if Java's answer is exactly what the rule states of Java.
    """
    loaded, valid = _loaded(case)
    final = _final(loaded, case["rows"])
    asked = set(_keys(case))
    known = {queue: offset for queue, offset in final.items() if queue in asked}
    answer = dict(java)
    if java == {"error": "MQClientException"} and valid is None and case["backup"] in _INVALID and case["backup"]:
        applied["unreadable"] += 1
        backup = case["backup"] if case["file"] is None else case["file"]
        answer = {"file": _text_of(known), "backup": backup, "read": [known.get(each, -1) for each in _keys(case)]}
        if not case["rows"]:
            answer["file"] = None
    if "error" in answer:
        return answer
    if answer["file"] is not None:
        applied["order"] += answer["file"] != _sorted(answer["file"])
        answer["file"] = _sorted(answer["file"])
    if answer["file"] == _text_of(known) and known != final:
        applied["kept"] += 1
        answer["file"] = _text_of(final)
    if answer["backup"] == (case["backup"] if case["file"] is None else case["file"]):
        applied["backup"] += answer["backup"] != (case["backup"] if valid is None else valid)
        answer["backup"] = case["backup"] if valid is None else valid
    if final == loaded and answer["file"] in (None, _text_of(final)):
        applied["unchanged"] += answer["file"] != case["file"] or answer["backup"] != case["backup"]
        answer |= {"file": case["file"], "backup": case["backup"]}
    return answer


def _keys(case: Case) -> list[tuple[Any, ...]]:
    return [tuple(queue) for queue in case["queues"]]


def _text_of(offsets: Mapping[tuple[Any, ...], int]) -> str:
    return _text([[*queue, offsets[queue]] for queue in sorted(offsets)])


def _loaded(case: Case) -> tuple[dict[tuple[Any, ...], int], str | None]:
    """Return the offsets of the file, or else of its backup, and the text that has them.

    The text is None if neither is valid.
    """
    for name in ("file", "backup"):
        if case[name] is not None and case[name] not in _INVALID:
            return {_key(entry): int(offset) for entry, offset in _ENTRY.findall(case[name])}, case[name]
    return {}, None


def _key(entry: str) -> tuple[Any, ...]:
    fields = json.loads(entry, strict=False)
    return fields["topic"], fields["brokerName"], fields["queueId"]


def _final(loaded: Mapping[tuple[Any, ...], int], rows: Sequence[Row]) -> dict[tuple[Any, ...], int]:
    """Return the offsets after all updates."""
    final = dict(loaded)
    for topic, broker, queue_id, offset, increase_only in rows:
        queue = (topic, broker, queue_id)
        if not increase_only or offset > final.get(queue, -1):
            final[queue] = offset
    return final


def _sorted(text: str) -> str:
    """Return a file of Java with its entries sorted by queue; their bytes stay as they are."""
    entries = [match.group() for match in _ENTRY.finditer(text)]
    entries.sort(key=lambda entry: _key(entry.rpartition(":")[0]))
    pieces = iter(entries)
    return _ENTRY.sub(lambda _: next(pieces), text)


LOCAL_OFFSETS = Suite("local offsets", "local_offsets", OFFSET_FILES_DRAWN // _CHUNK, files_of, _ours, _mended, RULES)
