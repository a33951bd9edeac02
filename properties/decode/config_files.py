"""Read the JSON files below `config/` and a broker's settings, as RocketMQ reads them.

RocketMQ writes maps with integer keys without quotes (`{0:5,1:7}`), which a strict JSON parser rejects. It reads
`X.bak` if `X` is missing, empty or not JSON. Settings are lines `name=value` as in Java's properties files.

Source: RocketMQ's `ConfigManager`, `MixAll.string2File`, `MixAll.properties2Object`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = [
    "load_config", "named_as_stored", "parse_config", "parse_consumer_offsets", "parse_delay_offsets", "parse_settings",
]  # fmt: skip

# The pattern skips whole strings, and an unterminated one to the end; it finds integers in the place of a key.
_KEY = re.compile(r'"(?:[^"\\]|\\.)*"?|(?<=[{,])(\s*)(-?[0-9]+)(?=\s*:)', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_PAIR = re.compile(r"((?:[^=:\s\\]|\\.)+)\s*[=:\s]\s*(.*)", re.DOTALL)


def parse_config(stored: bytes) -> Any:
    """Return the document in a JSON file; integer keys become text. Raises ValueError."""
    text = stored.decode("utf-8", "replace")
    try:
        try:
            return json.loads(text)
        except ValueError:
            quoted = _KEY.sub(lambda found: found[0] if found[2] is None else f'{found[1]}"{found[2]}"', text)
            return json.loads(quoted)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def load_config(files: Mapping[str, bytes], path: str) -> Any:
    """Return the document in a state file or else in its backup; None if neither has one."""
    for name in (path, f"{path}.bak"):
        try:
            return parse_config(files[name])
        except (KeyError, ValueError):
            continue
    return None


def parse_consumer_offsets(document: Any) -> dict[tuple[str, str, int], int]:
    """Return the offsets in a consumerOffset.json or lmqConsumerOffset.json.

    Keys are topic, group and queue id. A light group has one offset for each topic, with queue id 0. Raises ValueError
    if the document has another form.
    """
    try:
        return {(*_topic_and_group(name), queue_id): _whole(offset) for name, queue_id, offset in _numbers(document)}
    except AttributeError as error:
        raise ValueError("these are no consumer offsets: a table is no object of JSON") from error


def _numbers(document: Any) -> Iterator[tuple[str, int, Any]]:
    for name, by_queue in document.get("offsetTable", {}).items():
        for queue_id, offset in by_queue.items():
            yield name, _whole(queue_id), offset
    for name, offset in document.get("lmqOffsetTable", {}).items():
        yield name, 0, offset


def _whole(value: Any) -> int:
    """Return a whole number. Raises ValueError for anything else."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{value!r:.100} is no whole number") from error


def _topic_and_group(name: str) -> tuple[str, str]:
    topic, at, group = name.partition("@")
    if not at or "@" in group:
        raise ValueError(f"{name!r} names no topic and group")
    return topic, group


def parse_delay_offsets(document: Any) -> tuple[tuple[int, int], ...]:
    """Return each level of a delayOffset.json with its next queue offset, sorted.

    Raises ValueError.
    """
    try:
        table = document["offsetTable"].items()
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("these are no delay offsets: offsetTable is no object of JSON") from error
    return tuple(sorted((_whole(level), _whole(number)) for level, number in table))


def parse_settings(text: str) -> dict[str, str]:
    """Return the settings in a properties file.

    Comments begin with # or !, and a backslash continues a line.
    """
    settings: dict[str, str] = {}
    pending = ""
    for line in text.splitlines():
        line = pending + line.lstrip()
        if not pending and line[:1] in ("", "#", "!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
            continue
        pending = ""
        if pair := _PAIR.fullmatch(line):
            settings[_ESCAPE.sub(r"\1", pair[1])] = _ESCAPE.sub(r"\1", pair[2]).strip()
    return settings


def named_as_stored(entry: Any) -> dict[str, Any]:
    """Return the fields of an entry under RocketMQ's names."""
    found = {}
    for name in entry.__slots__:
        head, *rest = name.split("_")
        found[head + "".join(word.title() for word in rest)] = getattr(entry, name)
    return found
