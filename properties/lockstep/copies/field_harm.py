"""Harm a copy of the closed store in one field, and judge what the copy still owes.

The copy is opened twice: with the damage as it is, and once more after puts. What it has to serve is
`model.salvage.broken_promises`.
"""

from collections.abc import Sequence

from tornpage.impl.store import MessageStore
from tornpage.model import corruption, salvage
from tornpage.model.dispatch import places
from tornpage.model.operations import HarmField
from tornpage.model.state import Record
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.disk import Image
from tornpage.properties.lockstep.closing import close
from tornpage.properties.lockstep.copies.harmed_copies import FLOORS, place_of, pull_queue, put_to_queue
from tornpage.properties.lockstep.pair import Pair
from tornpage.properties.lockstep.recovery import Recovery
from tornpage.properties.program.log_places import ROOT, log_files

__all__ = ["harm_field"]

_AT = {"queue_id": (12, 4), "queue_offset": (20, 8)}
_FIXED_BYTES = 88
"""The least bytes of a record before its body."""
_AHEAD = ((True, False), (True, True), (False, True), (False, False))
"""Whether the first of two files made ahead exists, empty, and whether the second one has its zeros."""
_MEANINGLESS = bytes(range(7, 250))
"""Bytes in which each unit states a place past any log, and a size that no record has."""
_BLANK_BYTES = 8
_WITHOUT_LOSS = ("deleted_topics", "ahead", "queue_bytes", "left_over")
"""The harms that change no record."""
_DELETED_TOPICS = f"{ROOT}/config/deletedTopics"


def harm_field(pair: Pair, recovery: Recovery, harm: HarmField) -> None:
    """Close the store, open a copy with the harm, judge it, and open the store again."""
    if not corruption.applies(pair.model, harm):
        return
    pair.files.mend()
    close(pair)
    is_whole = pair.log.flushed_offset == pair.log.end_offset and pair.store.read_only_reason is None
    if is_whole and not pair.layout.multi_dispatch and pair.layout.role != "SLAVE":
        image = pair.durable(pair.files)
        record = pair.log.retained[harm.record % len(pair.log.retained)]
        harmed = _harmed(pair, image, record, harm)
        if harmed is not None:
            _judge(pair, harmed, record, harm)
            pair.cover(f"harmed_{harm.field}")
    recovery.open()


def _harmed(pair: Pair, image: Image, record: Record, harm: HarmField) -> Image | None:
    """Return the image with the harm, or None if it leaves nothing to judge."""
    match harm.field:
        case "queue_offset" | "queue_id" | "topic":
            return _with_field(pair, image, record, harm)
        case "deleted_topics":
            return _without_deleted_topics(pair, image)
    return _without_floors(pair, image, record, harm)


def _without_deleted_topics(pair: Pair, image: Image) -> Image | None:
    """Return the image without floors and deleted topics.

    Return None if the log has no record of a topic from before its deletion.
    """
    deleted = dict(pair.log.deleted)
    queues = [(place[0][0], record.offset) for record in pair.log.retained for place in places(record, pair.layout)]
    if not any(offset < deleted.get(topic, 0) for topic, offset in queues):
        return None
    ours = (*FLOORS, _DELETED_TOPICS)
    return Image(image.directories, {path: data for path, data in image.files.items() if path not in ours})


def _with_field(pair: Pair, image: Image, record: Record, harm: HarmField) -> Image | None:
    """Return the image with a field changed, or None if that changes nothing to judge.

    So it is where the field has that value already, and where a checksum covers it.
    """
    if pair.settings.trailer:
        return None
    path, start = place_of(pair, image, record)
    content = bytearray(image.files[path])
    if harm.field == "topic":
        topic = (record.message.topic or "").encode()
        at = content.find(bytes([len(topic)]) + topic, start + _FIXED_BYTES) + 1
        if not start < at < start + record.size_bytes:
            return None
        content[at] = harm.value % 255 + 1
    else:
        offset, size = _AT[harm.field]
        content[start + offset : start + offset + size] = (harm.value % (1 << 8 * size)).to_bytes(size, "big")
    if bytes(content) == image.files[path]:
        return None
    return Image(image.directories, {**image.files, path: bytes(content)})


def _without_floors(pair: Pair, image: Image, record: Record, harm: HarmField) -> Image | None:
    """Return the image without floors, with a changed body, a lost end, or files made ahead.

    Return None where nothing proves the damage of a body or an end.
    """
    files = {path: data for path, data in image.files.items() if path not in FLOORS}
    path, start = place_of(pair, image, record)
    data = files[path]
    if harm.field == "swapped":
        return _with_swapped_files(image, files, path, is_killed=bool(harm.value % 2))
    if harm.field == "queue_bytes":
        return _with_queue_bytes(pair, image, files, record)
    if harm.field == "ahead":
        return Image(image.directories, {**files, **_files_ahead(pair, image, harm), f"{ROOT}/abort": b""})
    if harm.field == "end":
        for later in [name for name in log_files(files) if _base(name) > _base(path)]:
            del files[later]
        files[path] = data[:start] + bytes(len(data) - start)
        if not start and _base(path):
            del files[path]
        is_judged = bool(log_files(files)) and _is_queued(pair, record)  # without a log file nothing says where it was
        return Image(image.directories, files) if is_judged else None
    if harm.field == "left_over":
        return _with_left_over_bytes(pair, image, harm)
    return _with_bodies(pair, image, files, _harmed_records(pair, record, harm))


def _harmed_records(pair: Pair, record: Record, harm: HarmField) -> list[Record]:
    """Return the records whose bodies are changed."""
    later = [each for each in pair.log.retained if each.offset >= record.offset and each.message.body]
    return later[: 1 + harm.value % 4]


def _with_bodies(pair: Pair, image: Image, files: dict[str, bytes], harmed: Sequence[Record]) -> Image | None:
    """Return the image of a killed store with a changed byte in each of these bodies.

    Return None if nothing proves that they were flushed.
    """
    flushed_ms = int.from_bytes(files.get(f"{ROOT}/checkpoint", b"")[:8].ljust(8, b"\0"), "big", signed=True) - 3000
    if not harmed or flushed_ms + 3000 > pair.environment.clock() or pair.settings.pool_buffers:
        return None
    first, offsets = harmed[0].offset, {record.offset for record in harmed}
    records = pair.log.retained
    newest_ms = max((each.store_timestamp for each in records if each.offset < first), default=0)
    times = (each.store_timestamp for each in records if each.offset > first and each.offset not in offsets)
    if not any(newest_ms <= time <= flushed_ms for time in times):
        return None
    for record in harmed:
        path, start = place_of(pair, image, record)
        data = files[path]
        at = data.find(record.message.body or b"", start + _FIXED_BYTES)
        files[path] = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    return Image(image.directories, {**files, f"{ROOT}/abort": b""})


def _with_left_over_bytes(pair: Pair, image: Image, harm: HarmField) -> Image | None:
    """Return the image with bytes past the end of the log, or None without room for them."""
    path, end = log_files(image.files)[-1], pair.log.end_offset
    at = end - _base(path) + _zeros_before(harm)
    data = image.files[path]
    if not _base(path) < end or at + len(_MEANINGLESS) > len(data):
        return None
    return Image(image.directories, {**image.files, path: data[:at] + _MEANINGLESS + data[at + len(_MEANINGLESS) :]})


def _zeros_before(harm: HarmField) -> int:
    """Return the number of zeros between the end of the log and the bytes that are left over."""
    return 6 * (harm.value % 4)


def _with_swapped_files(image: Image, files: dict[str, bytes], path: str, *, is_killed: bool) -> Image | None:
    """Return the image with two swapped log files, or None without a record in the next one."""
    names = log_files(files)
    at = names.index(path) + 1
    if at == len(names) or not any(files[names[at]][:_FIXED_BYTES]):
        return None
    swapped = {path: files[names[at]], names[at]: files[path]}
    marker = {f"{ROOT}/abort": b""} if is_killed else {}
    return Image(image.directories, {**files, **swapped, **marker})


def _with_queue_bytes(pair: Pair, image: Image, files: dict[str, bytes], record: Record) -> Image | None:
    """Return the image with garbage in a queue file, or None if the record is in no queue."""
    own = next(iter(places(record, pair.layout)), None)
    folder = f"{ROOT}/consumequeue/{own[0][0]}/{own[0][1]}/" if own is not None else ROOT
    names = sorted(name for name in files if name.startswith(folder) and own is not None)
    if not names:
        return None
    size = len(files[names[-1]])
    return Image(image.directories, {**files, names[-1]: (_MEANINGLESS * (size // len(_MEANINGLESS) + 1))[:size]})


def _files_ahead(pair: Pair, image: Image, harm: HarmField) -> dict[str, bytes]:
    """Return the files made ahead that a crash left incomplete after the newest log file."""
    is_first_there, has_zeros = _AHEAD[harm.value % len(_AHEAD)]
    newest, size = log_files(image.files)[-1], pair.settings.file_bytes
    first, second = (f"{newest.rpartition('/')[0]}/{_base(newest) + number * size:020d}" for number in (1, 2))
    return ({first: b""} if is_first_there else {}) | {second: bytes(size if has_zeros else 0)}


def _base(path: str) -> int:
    return int(path.rpartition("/")[2])


def _is_queued(pair: Pair, record: Record) -> bool:
    """Return whether a record that is taken away, or a later one, is the last of a queue."""
    return any(places(each, pair.layout) for each in pair.log.retained if each.offset >= record.offset)


def _judge(pair: Pair, image: Image, harmed: Record, harm: HarmField) -> None:
    """Open the copy, read it, put to its queues, open it again. Raises GuaranteeBroken."""
    before = _before(pair, harmed, harm)
    files = pair.new_disk(image)
    store = pair.open_on(files, whole_log=True, verifies=True)
    if harm.field in ("body", "end", "swapped") and store.read_only_reason is None:
        raise GuaranteeBroken(7, f"damage at offset {harmed.offset} goes unnoticed", "read-only", "read-write")
    if harm.field in ("ahead", "queue_bytes") and store.read_only_reason is not None:
        what = "files made ahead" if harm.field == "ahead" else "the bytes of a queue file"
        raise GuaranteeBroken(7, f"{what} are taken for damage of the log", "read-write", store.read_only_reason)
    if harm.field == "left_over" and (store.read_only_reason is None) != (_zeros_before(harm) >= _BLANK_BYTES):
        what = f"bytes follow the end of the log after {_zeros_before(harm)} zeros"
        raise GuaranteeBroken(7, what, "read-only before 8 zeros", str(store.read_only_reason))
    _raise_broken(before, _answers(store, before))
    store.close()
    again = pair.open_on(pair.last_disk(pair.durable(files)), whole_log=True, verifies=True)
    _raise_broken(before, _answers(again, before))
    again.close()


def _before(pair: Pair, harmed: Record, harm: HarmField) -> salvage.Before:
    log, layout = pair.log, pair.layout
    deleted = dict(log.deleted)
    messages = []
    for record in log.retained:
        own = next(iter(places(record, layout)), None)
        counts = own is not None and record.offset >= deleted.get(own[0][0], 0)
        queue, number = own if own is not None and counts else (None, -1)
        messages.append(salvage.Message(record.offset, record.message.body or b"", queue, number))
    lost = set() if harm.field in _WITHOUT_LOSS else {harmed.offset}
    end: int | None = log.end_offset
    queues = {message.queue for message in messages if message.queue}
    if harm.field == "end":
        lost = {message.offset for message in messages if message.offset >= harmed.offset}
        end = harmed.offset
    elif harm.field == "body":
        lost = {record.offset for record in _harmed_records(pair, harmed, harm)}
        for record in reversed(log.retained):
            if record.offset not in lost:
                break
            end = record.offset  # the damage after the last intact record ends the log
    elif harm.field == "swapped":
        first = harmed.offset // pair.settings.file_bytes
        lost = {each.offset for each in messages if each.offset // pair.settings.file_bytes in (first, first + 1)}
        end = None
    elif harm.field == "queue_bytes":
        queues -= {message.queue for message in messages if message.offset == harmed.offset}
    intact = {message.offset for message in messages} - lost
    return salvage.Before(messages, intact, queues, may_be_cut=False, has_floor=True, log_end=end)


def _answers(store: MessageStore, before: salvage.Before) -> salvage.Opened:
    found = salvage.Opened(is_writable=store.read_only_reason is None, log_end=store.max_offset)
    found.served = {each.offset: each.body for each in observed("messages", lambda: list(store.messages()))}
    queues = {message.queue for message in before.messages if message.queue}
    for queue in sorted(queues | set(store.queues())):
        pull_queue(store, queue, found)
    for queue in sorted(queues) if found.is_writable else ():
        put_to_queue(store, queue, found)
    for finding in store.findings:
        place = finding.file[finding.file.find("consumequeue/") :] if "consumequeue/" in finding.file else finding.file
        found.notes.append(place)
        if finding.severity == "damage":
            found.damages.append(place)
    return found


def _raise_broken(before: salvage.Before, after: salvage.Opened) -> None:
    for contract, sentence in salvage.broken_promises(before, after):
        raise GuaranteeBroken(contract, sentence)
