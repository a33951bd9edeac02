"""Read the JSON files below `config/` and a broker's settings, as RocketMQ reads them.

RocketMQ writes maps with integer keys without quotes (`{0:5,1:7}`), which no strict parser takes. It falls back to
`X.bak` where `X` is missing, empty or no JSON. Settings are lines `name=value` as in Java's properties files.

Source: RocketMQ's `ConfigManager`, `MixAll.string2File`, `MixAll.properties2Object`.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["parse_config", "parse_settings"]

# A string is passed over whole; an integer that stands where a key does gets its quotes.
_KEY = re.compile(r'"(?:[^"\\]|\\.)*"|(?<=[{,])(\s*)(-?[0-9]+)(?=\s*:)', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_PAIR = re.compile(r"((?:[^=:\s\\]|\\.)+)\s*[=:\s]\s*(.*)", re.DOTALL)


def parse_config(stored: bytes) -> Any:
    """Return what a JSON file says; integer keys are text. Raises ValueError if it says nothing."""
    text = stored.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except ValueError:
        quoted = _KEY.sub(lambda found: found[0] if found[2] is None else f'{found[1]}"{found[2]}"', text)
        return json.loads(quoted)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def parse_settings(text: str) -> dict[str, str]:
    """Return the settings of a properties file: comments with # or !, lines that a backslash continues."""
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
