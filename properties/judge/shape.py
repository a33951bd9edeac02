"""Find the settings for the store of an image, from the user or else from its bytes.

A store directory does not state its settings. File sizes are visible. The number of slots of an index file is found if
exactly one number makes all its entries consistent. Multi-dispatch, light queues and the extension leave traces. If the
bytes allow several answers, a finding says so, and the number that depends on it is not judged.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tornpage.impl.config.broker_settings import parse_lines, problem_of
from tornpage.impl.config.defaults import ROCKETMQ_VERSION
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.errors import BadConfig
from tornpage.model.message import SCHEDULE_TOPIC
from tornpage.model.state import DELAYS_MS, Layout
from tornpage.properties.decode.consumequeue import UNIT_BYTES
from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.index_files import opened_index, unsettled
from tornpage.properties.decode.opening import InspectError, drops_joined_by
from tornpage.properties.decode.record import Blank, Record, decode_record, drops_joined_pairs, parse_properties
from tornpage.properties.decode.store import Floor, read_floor
from tornpage.properties.decode.units import decode_units
from tornpage.properties.judge.image import OTHER_DIRECTORIES, LogRead, SeenImage, log_names, read_log
from tornpage.properties.program.case import Settings
from tornpage.properties.program.log_places import ROOT

__all__ = [
    "Look",
    "SettingsOverride",
    "StoreLayout",
    "delays_of",
    "first_look",
    "look_at",
    "read_override",
    "read_settings_file",
    "store_layout_of",
]

_BYTES_MAX = 1 << 20

_NUMBERS = (
    "mappedFileSizeCommitLog",
    "mappedFileSizeConsumeQueue",
    "mappedFileSizeConsumeQueueExt",
    "maxHashSlotNum",
    "maxIndexNum",
)

_SWITCHES = (
    "enableConsumeQueueExt",
    "enableLmq",
    "enableMultiDispatch",
    "messageIndexEnable",
    "transientStorePoolEnable",
)

_LEVELS, _LOG_PATHS = "messageDelayLevel", "storePathCommitLog"

_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

_NUMBER = re.compile(r"[0-9]{1,13}")

_LEVEL = re.compile(r"([0-9]{1,9})([smhd])")


@dataclass(frozen=True, slots=True)
class SettingsOverride:
    """Settings under RocketMQ's names; those that are missing are found from the bytes.

    `log_paths` are the directories of the log as written in the settings. `rocketmq_version` is the release that wrote
    the store, None if that does not matter.
    """

    numbers: Mapping[str, int] = field(default_factory=dict)
    switches: Mapping[str, bool] = field(default_factory=dict)
    delay_level: str | None = None
    log_paths: tuple[str, ...] = ()
    rocketmq_version: str | None = None

    @property
    def drops_joined(self) -> bool:
        """Whether the release drops properties with two separators."""
        return self.rocketmq_version is not None and drops_joined_pairs(self.rocketmq_version)

    def with_numbers(self, **numbers: int | None) -> SettingsOverride:
        """Return the same settings with further numbers, those that are not None."""
        told = {name: number for name, number in numbers.items() if number is not None}
        return replace(self, numbers={**self.numbers, **told})

    def with_release(self, version: str | None) -> SettingsOverride:
        """Return the same settings for a store of a release.

        Raises InspectError if the version is invalid.
        """
        drops_joined_by(version)
        return replace(self, rocketmq_version=version)


def read_override(settings: Mapping[str, str], *, source: str) -> SettingsOverride:
    """Return the settings that matter here (`name=value`, RocketMQ's names).

    Other settings are ignored. Raises InspectError.
    """
    numbers, switches = {}, {}
    for name in _NUMBERS:
        if name in settings:
            text = settings[name]
            if not (_NUMBER.fullmatch(text) and 0 < int(text) < 1 << 40):
                raise InspectError(f"{source!r} has {name}={text!r}; give a positive number")
            numbers[name] = int(text)
    for name in _SWITCHES:
        if name in settings:
            if settings[name].lower() not in ("true", "false"):
                raise InspectError(f"{source!r} has {name}={settings[name]!r}; give true or false")
            switches[name] = settings[name].lower() == "true"
    level = settings.get(_LEVELS)
    if level is not None:
        delays_of(level, source=source)
    paths = tuple(filter(None, (path.strip() for path in settings.get(_LOG_PATHS, "").split(","))))
    return SettingsOverride(numbers, switches, level, paths)


def read_settings_file(path: str) -> SettingsOverride:
    """Return the settings in a broker's settings file. Raises InspectError."""
    try:
        with Path(path).open("rb") as file:
            stored = file.read(_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InspectError(f"cannot read the broker's settings {path!r}: {reason}; check the path") from error
    if len(stored) > _BYTES_MAX:
        raise InspectError(f"{path!r} is too long for a settings file; give the broker's name=value file")
    settings, problem = parse_lines(stored.decode("utf-8", "replace"))
    problem = problem or problem_of(settings)
    if problem is not None:
        raise InspectError(f"the broker's settings {path!r}: {problem}")
    return read_override(settings, source=path)


def delays_of(level: str, *, source: str) -> tuple[int, ...]:
    """Return the delays (ms) of a table of levels such as `1s 5s 2h`. Raises InspectError."""
    found = [_LEVEL.fullmatch(text) for text in level.split(" ")]
    if not all(found):
        raise InspectError(f"{source!r} has messageDelayLevel={level!r}; give times such as 1s 5m 2h 1d")
    return tuple(int(match[1]) * _UNITS_MS[match[2]] for match in found if match)


_FILE_BYTES: Final = 1 << 30

_QUEUE_UNITS: Final = 1000

_EXT_BYTES: Final = 1 << 16

_SLOTS, _ENTRIES = 1000, 2000

_RECORD_BYTES_MAX = (1 << 31) - 1

_LIGHT_PREFIX = "%LMQ%"

_PLACE = struct.Struct(">qi")


@dataclass(frozen=True, slots=True)
class StoreLayout:
    """Sizes and switches of a store.

    `unknown` has the reason for each contract number that cannot be judged.
    """

    settings: Settings
    layout: Layout
    config: MessageStoreConfig
    log_directories: tuple[str, ...]
    findings: tuple[Finding, ...]
    unknown: dict[int, str]


def first_look(seen: SeenImage, override: SettingsOverride) -> tuple[LogRead, tuple[str, ...], int]:
    """Return the log of an image, its directories, and its file size.

    Raises InspectError.
    """
    content = seen.content
    directories = _log_directories(seen, override)
    floor = read_floor(seen.directory)
    file_bytes = override.numbers.get("mappedFileSizeCommitLog") or (
        floor.file_bytes if floor is not None and floor.file_bytes > 0 else _file_bytes(content, directories)
    )
    log = read_log(content, directories, file_bytes=file_bytes, floor=0 if floor is None else floor.offset)
    return log, directories, file_bytes


@dataclass(frozen=True, slots=True)
class Look:
    """The log of an image, the layout of its store, and its durable floor, None without one."""

    log: LogRead
    store_layout: StoreLayout
    floor: Floor | None


def look_at(seen: SeenImage, override: SettingsOverride) -> Look:
    """Look at an image. Raises InspectError."""
    log, directories, file_bytes = first_look(seen, override)
    store_layout = store_layout_of(seen, override, log, directories=directories, file_bytes=file_bytes)
    return Look(log, store_layout, read_floor(seen.directory))


def store_layout_of(
    seen: SeenImage, override: SettingsOverride, log: LogRead, *, directories: Sequence[str], file_bytes: int
) -> StoreLayout:
    """Return the settings of the store whose log was read.

    Raises InspectError for impossible settings.
    """
    content = seen.content
    findings: list[Finding] = []
    unknown: dict[int, str] = {}
    slots, entries = _index_sizes(seen, override, findings, unknown)
    records = (*log.records, *log.past_end)
    multi, light = _dispatched_further(records, content, override)
    if content.get("config/deletedTopics"):
        unknown[4] = unknown[5] = "topics were deleted, and the image does not show which records are still dispatched"
    if override.delay_level is None and _has_other_delays(records, content):
        unknown[4] = "due times in the image do not fit the default delay levels, and it does not show the levels"
        remedy = "give messageDelayLevel with --broker-config"
        message = "due times of messages do not fit the default delay levels"
        findings.append(Finding("CQ_DELAYS_UNKNOWN", "note", "consumequeue/SCHEDULE_TOPIC_XXXX", None, message, remedy))
    ext_files = [len(data) for name, data in content.items() if name.startswith("consumequeue_ext/") and data]
    delays_ms = (
        DELAYS_MS if override.delay_level is None else delays_of(override.delay_level, source="messageDelayLevel")
    )
    settings = Settings(
        file_bytes=file_bytes,
        record_bytes_max=_RECORD_BYTES_MAX,
        multi_dispatch=multi,
        light_queues=light,
        delay_levels=len(delays_ms),
        queue_units=_queue_units(content, override, findings),
        queue_ext=override.switches.get("enableConsumeQueueExt", bool(ext_files)),
        index=override.switches.get("messageIndexEnable", True),
        index_slots=slots,
        index_entries=entries,
    )
    ext_bytes = override.numbers.get("mappedFileSizeConsumeQueueExt", _commonest(Counter(ext_files), _EXT_BYTES))
    layout = Layout(
        file_bytes=file_bytes,
        record_bytes_max=_RECORD_BYTES_MAX,
        trailer=True,
        sync_flush=False,
        files_max=1 << 30,
        multi_dispatch=multi,
        light_queues=light,
        delay_levels=len(delays_ms),
        delays_ms=delays_ms,
        queue_file_bytes=settings.queue_units * UNIT_BYTES,
        index=settings.index,
        drops_joined=override.drops_joined,
    )
    return StoreLayout(settings, layout, _config(settings, override, ext_bytes, directories), tuple(directories),
                 tuple(findings), unknown)  # fmt: skip


def _config(
    settings: Settings, override: SettingsOverride, ext_bytes: int, directories: Sequence[str]
) -> MessageStoreConfig:
    try:
        config = MessageStoreConfig(
            mapped_file_size_commit_log=settings.file_bytes,
            max_message_size=settings.record_bytes_max,
            store_path_commit_log=tuple(directories),
            enable_multi_dispatch=settings.multi_dispatch,
            enable_lmq=settings.light_queues,
            mapped_file_size_consume_queue=settings.queue_units * UNIT_BYTES,
            enable_consume_queue_ext=settings.queue_ext,
            mapped_file_size_consume_queue_ext=ext_bytes,
            message_index_enable=settings.index,
            max_hash_slot_num=settings.index_slots,
            max_index_num=settings.index_entries,
            disk_space_warning_level_ratio=1.0,
            disk_space_clean_forcibly_ratio=1.0,
            transient_store_pool_enable=override.switches.get("transientStorePoolEnable", False),
            transient_store_pool_size=1,
            rocketmq_version=override.rocketmq_version or ROCKETMQ_VERSION,
        )
        return config if override.delay_level is None else replace(config, message_delay_level=override.delay_level)
    except BadConfig as error:
        raise InspectError(f"no store can have these sizes: {error}; give them with --broker-config") from error


def _log_directories(seen: SeenImage, override: SettingsOverride) -> tuple[str, ...]:
    """Return the directories of the log by name below the store.

    They are the given ones, or else those with log files.
    """
    if override.log_paths:
        names = []
        for path in override.log_paths:
            name = path.rstrip("/").rpartition("/")[2]
            if f"{ROOT}/{name}" not in seen.image.directories:
                raise InspectError(
                    f"storePathCommitLog names {path}, and the image has no directory {name}; copy it in"
                )
            names.append(name)
        return tuple(names)
    found = {name.partition("/")[0] for name in seen.content if name.count("/") == 1} - OTHER_DIRECTORIES
    return tuple(sorted({"commitlog"} | {name for name in found if _holds_log(seen.content, name)}))


def _holds_log(content: dict[str, bytes], directory: str) -> bool:
    """Whether a directory has a file that begins as a log file of its name.

    RocketMQ 5 gives such names to other files too.
    """
    return any(
        isinstance(decode_record(content[name], offset=base), Record | Blank)
        for base, name in log_names(list(content), (directory,))
    )


def _file_bytes(content: dict[str, bytes], directories: Sequence[str]) -> int:
    """Return the size of a log file.

    It is the size whose multiples most files begin at, or the commonest of several.
    """
    found = log_names(list(content), directories)
    sizes = Counter(len(content[name]) for _, name in found if content[name])
    fits = {size: sum(base % size == 0 for base, _ in found) for size in sizes}
    return max(sizes, key=lambda size: (fits[size], sizes[size]), default=_FILE_BYTES)


def _commonest(sizes: Counter[int], default: int) -> int:
    """Return the commonest size; on a tie the one seen first."""
    return sizes.most_common(1)[0][0] if sizes else default


def _queue_units(content: dict[str, bytes], override: SettingsOverride, findings: list[Finding]) -> int:
    told = override.numbers.get("mappedFileSizeConsumeQueue")
    if told is not None:
        return -(-told // UNIT_BYTES)
    sizes = Counter(len(data) for name, data in content.items() if name.startswith("consumequeue/") and len(data) >= 20)
    size = _commonest(sizes, _QUEUE_UNITS * UNIT_BYTES)
    if len(sizes) > 1:
        every = ", ".join(map(str, sorted(sizes)))
        message = f"queue files have {every} bytes; {size} is taken as the size, and files of other sizes are rebuilt"
        remedy = "give mappedFileSizeConsumeQueue with --broker-config"
        findings.append(Finding("CQ_MIXED_SIZES", "note", "consumequeue", None, message, remedy))
    return max(1, size // UNIT_BYTES)


def _index_sizes(
    seen: SeenImage, override: SettingsOverride, findings: list[Finding], unknown: dict[int, str]
) -> tuple[int, int]:
    """Return slots and entries of an index file.

    Number 5 is not judged if the bytes leave them open.
    """
    told = override.numbers.get("maxHashSlotNum")
    seen_sizes: Counter[tuple[int, int]] = Counter()
    for reader in opened_index(seen.directory, told, findings):
        if reader.slots is not None and reader.entries_max is not None:
            seen_sizes[reader.slots, reader.entries_max] += 1
        elif reader.entry_count or seen.content[reader.file.label].strip(b"\0"):
            findings.append(unsettled(reader, told))
    open_questions = [found.file for found in findings if found.code == "IX_SLOTS_UNKNOWN"]
    if not seen_sizes:
        if open_questions and told is None:
            unknown[5] = f"{open_questions[0]} does not show how many slots an index file has"
        return told or _SLOTS, override.numbers.get("maxIndexNum", _ENTRIES)
    if len(seen_sizes) > 1 and told is None:
        unknown[5] = "index files have several sizes, and the image does not show which one was configured"
    (slots, entries), _ = seen_sizes.most_common(1)[0]
    return slots, override.numbers.get("maxIndexNum", entries)


def _dispatched_further(
    records: Iterable[Record], content: dict[str, bytes], override: SettingsOverride
) -> tuple[bool, bool]:
    """Return whether records go to further queues, and whether light queues have the id 0."""
    multi = light = False
    for record in records:
        if b"INNER_MULTI_QUEUE_OFFSET" not in record.properties:
            continue
        names = parse_properties(record.properties).get("INNER_MULTI_DISPATCH", "").split(",")
        multi = True
        for name in names:
            if name.startswith(_LIGHT_PREFIX):
                as_topic = any(found.startswith(f"consumequeue/{name}/{record.queue_id}/") for found in content)
                light |= record.queue_id == 0 or not as_topic
    return override.switches.get("enableMultiDispatch", multi), override.switches.get("enableLmq", light)


def _has_other_delays(records: Iterable[Record], content: dict[str, bytes]) -> bool:
    """Return whether a delayed message has another due time than the default levels give.

    Only complete units are compared.
    """
    for record in records:
        if record.topic_text != SCHEDULE_TOPIC or record.queue_id >= len(DELAYS_MS) or record.queue_id < 0:
            continue
        needle = _PLACE.pack(record.offset, record.size_bytes)
        prefix = f"consumequeue/{SCHEDULE_TOPIC}/{record.queue_id}/"
        for name, data in content.items():
            at = data.find(needle) if name.startswith(prefix) else -1
            if at >= 0 and at % UNIT_BYTES == 0:
                units = decode_units(data[at : at + UNIT_BYTES])
                if units and units[0][2] != record.store_timestamp + DELAYS_MS[record.queue_id]:
                    return True
    return False
