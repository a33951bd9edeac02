"""Convert an interleaving to a readable document or a printable token, and back.

Tokens begin with `ti1-`. A schedule counts yield points, which are lines of the store. It means the same interleaving
only while these lines are unchanged. Therefore a document has a fingerprint of the modules it was made with, and
`source_has_changed` compares it.
"""

import importlib
import inspect
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from tornpage.model.operations import INTERLEAVED_OPERATIONS as OPERATIONS
from tornpage.model.operations import InterleavedOperation as Operation
from tornpage.model.operations import Member
from tornpage.properties.explore.interleavings.operations import PART_OPERATIONS, PartCall
from tornpage.properties.explore.interleavings.scenario import Interleaving, Scenario
from tornpage.properties.program.case import Settings
from tornpage.properties.program.packing import BadToken, packed, unpacked
from tornpage.properties.scheduler import Granularity

__all__ = [
    "RENAMED",
    "TOKEN_PREFIX",
    "described",
    "document_of",
    "from_text",
    "from_token",
    "source_has_changed",
    "token_of",
]

FORMAT = 1
TOKEN_PREFIX = "ti1-"
_YIELD_POINTS_MAX = 1 << 20
_KINDS: Mapping[str, Any] = {**OPERATIONS, **PART_OPERATIONS}
RENAMED = {
    "impl.appended_queue": "tornpage.impl.queue.consume_queue",
    "impl.clean_commit_log": "tornpage.impl.retention.clean_commit_log",
    "impl.clean_consume_queues": "tornpage.impl.retention.clean_consume_queues",
    "impl.commit_log": "tornpage.impl.log.commit_log",
    "impl.consume_queue": "tornpage.impl.queue.consume_queue",
    "impl.consume_queues": "tornpage.impl.queue.consume_queues",
    "impl.consumer_offsets": "tornpage.impl.groups.consumer_offsets",
    "impl.deleted_topics": "tornpage.impl.dispatch.deleted_topics",
    "impl.derived": "tornpage.impl.dispatch.derived",
    "impl.group_commit": "tornpage.impl.put.group_commit",
    "impl.index_directory": "tornpage.impl.index.index_service",
    "impl.index_entries": "tornpage.impl.index.index_entries",
    "impl.index_file": "tornpage.impl.index.index_file",
    "impl.index_service": "tornpage.impl.index.index_service",
    "impl.log_reader": "tornpage.impl.read.log_reader",
    "impl.mapped_file": "tornpage.impl.io.mapped_file",
    "impl.mapped_file_queue": "tornpage.impl.log.mapped_file_queue",
    "impl.message_query": "tornpage.impl.read.message_query",
    "impl.queue_files": "tornpage.impl.queue.queue_files",
    "impl.queue_pull": "tornpage.impl.read.queue_pull",
    "impl.queue_reads": "tornpage.impl.read.queue_reads",
    "impl.queue_units": "tornpage.impl.queue.consume_queue",
    "impl.reput": "tornpage.impl.dispatch.reput",
    "impl.topic_cleaning": "tornpage.impl.retention.topic_cleaning",
    "impl.units": "tornpage.impl.queue.units",
    "impl.durable_verbs": "tornpage.impl.durability",
    "impl.store_views": "tornpage.impl.store",
    "properties.planted.racing": "tornpage.properties.planted.races",
}
"""Former names of modules that tokens may contain, without `tornpage.`, and their present names."""


def document_of(interleaving: Interleaving) -> dict[str, Any]:
    """Return the readable form.

    The schedule is a list of switches, each with the task that continues.
    """
    scenario = interleaving.scenario
    return {
        "tornpage_interleaving": FORMAT,
        "name": scenario.name,
        "settings": _changed(scenario.settings),
        "before": [_written(operation) for operation in scenario.before],
        "tasks": [[_written(operation) for operation in task] for task in scenario.tasks],
        "services": list(scenario.services),
        "percent": scenario.percent,
        **({"part": scenario.part} if scenario.part else {}),
        "order": list(interleaving.order),
        "switches": [[at, number] for at, number in enumerate(interleaving.schedule) if number],
        "modules": list(interleaving.modules),
        **({"granularity": interleaving.granularity} if interleaving.granularity != "line" else {}),
        **({"changes": list(interleaving.changes)} if interleaving.changes is not None else {}),
        "source": fingerprint(interleaving.modules),
    }


def token_of(interleaving: Interleaving) -> str:
    """Return the interleaving as one printable token."""
    return packed(TOKEN_PREFIX, document_of(interleaving))


def from_token(token: str) -> tuple[Interleaving, str]:
    """Return an interleaving and the fingerprint of its modules. Raises BadToken."""
    return from_text(unpacked(TOKEN_PREFIX, token))


def from_text(text: str) -> tuple[Interleaving, str]:
    """Parse the readable form. Raises BadToken."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadToken(f"the file is not JSON ({error}); name a case file that a run wrote with --out") from error
    if not isinstance(document, dict) or document.get("tornpage_interleaving") != FORMAT:
        raise BadToken(f"this is not an interleaving of format {FORMAT} (key tornpage_interleaving)")
    try:
        scenario = Scenario(
            str(document["name"]),
            Settings(**document["settings"]),
            _read_all(document["before"]),
            tuple(_read_all(task) for task in document["tasks"]),
            tuple(map(str, document["services"])),
            int(document["percent"]),
            str(document.get("part", "")),
        )
        order = tuple(map(int, document["order"]))
        switches = {int(at): int(number) for at, number in document["switches"]}
        schedule = _schedule_of(switches)
        modules = tuple(dict.fromkeys(map(_present_name, map(str, document["modules"]))))
        granularity = _granularity(document.get("granularity", "line"))
        changes = document.get("changes")
        changed = None if changes is None else tuple(map(int, changes))
        read = Interleaving(scenario, order, schedule, modules, granularity, changed)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadToken(f"the interleaving cannot be read: {error}") from error
    if sorted(order) != list(range(scenario.task_count)):
        raise BadToken(f"the order {order} is not one of {scenario.task_count} tasks")
    return read, str(document.get("source", ""))


def _granularity(name: object) -> Granularity:
    match name:
        case "line" | "opcode" | "shared" | "shared opcode":
            return name
    raise ValueError(f"{name!r} is no kind of yield point")


def _schedule_of(switches: Mapping[int, int]) -> tuple[int, ...]:
    """Return the task that continues at each yield point.

    Raises ValueError for an impossible number.
    """
    if any(not 0 <= at < _YIELD_POINTS_MAX for at in switches):
        raise ValueError(f"a switch is not at a yield point from 0 to {_YIELD_POINTS_MAX}")
    return tuple(switches.get(at, 0) for at in range(max(switches, default=-1) + 1))


def _present_name(name: str) -> str:
    """Return the present import name of a module that a token names by its former name."""
    present = RENAMED.get(name.removeprefix("tornpage."), name)
    return present if present.startswith("tornpage.") else f"tornpage.{present}"


def fingerprint(modules: Iterable[str]) -> str:
    """Return a fingerprint of the source of these modules.

    Raises BadToken if one cannot be found.
    """
    checksum = 0
    for name in modules:
        try:
            checksum = zlib.crc32(inspect.getsource(importlib.import_module(name)).encode(), checksum)
        except (ImportError, OSError) as error:
            raise BadToken(f"there is no module {name!r}") from error
    return f"{checksum:08x}"


def source_has_changed(interleaving: Interleaving, source: str) -> bool:
    """Return whether the lines that the schedule counts have changed since it was made."""
    return fingerprint(interleaving.modules) != source


def described(interleaving: Interleaving) -> list[str]:
    """Return the program, one line for each task."""
    scenario = interleaving.scenario
    lines = [f"before: {_program(scenario.before)}"] if scenario.before else []
    lines += [f"task {number}: {_program(task)}" for number, task in enumerate(scenario.tasks)]
    first = len(scenario.tasks)
    return lines + [f"task {first + n}: the service {name}" for n, name in enumerate(scenario.services)]


def _program(operations: Sequence[Operation | PartCall]) -> str:
    return ", ".join(
        f"{operation.call}{operation.args}"
        if isinstance(operation, PartCall)
        else f"{operation.op}({', '.join(f'{name}={value}' for name, value in _changed(operation).items())})"
        for operation in operations
    )


def _changed(value: Any) -> dict[str, Any]:
    """Return the fields that differ from their defaults, as in JSON."""
    default = type(value)()
    named = ((item.name, getattr(value, item.name)) for item in fields(value) if item.name != "op")
    return {name: _plain(found) for name, found in named if found != getattr(default, name)}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return _changed(value) if isinstance(value, Member) else value


def _written(operation: Operation | PartCall) -> dict[str, Any]:
    return {"op": operation.op, **_changed(operation)}


def _read_all(items: Sequence[Any]) -> tuple[Operation | PartCall, ...]:
    return tuple(_read(dict(item)) for item in items)


def _read(item: dict[str, Any]) -> Operation | PartCall:
    kind: Any = _KINDS[item.pop("op")]
    if kind is PartCall:
        return PartCall(str(item["call"]), tuple(map(int, item.get("args", ()))))
    if "members" in item:
        item["members"] = tuple(Member(**member) for member in item["members"])
    if "in_use" in item:
        item["in_use"] = tuple(item["in_use"])
    operation: Operation = kind(**item)
    return operation
