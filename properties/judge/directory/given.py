"""What a user says about the store of an image: settings that a RocketMQ directory does not hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tornpage.properties.decode.config_files import parse_settings
from tornpage.properties.decode.opening import InspectError

__all__ = ["Given", "delays_of", "read_given", "read_settings_file"]

_BYTES_MAX = 1 << 20
_NUMBERS = (
    "mappedFileSizeCommitLog",
    "mappedFileSizeConsumeQueue",
    "mappedFileSizeConsumeQueueExt",
    "maxHashSlotNum",
    "maxIndexNum",
)
_SWITCHES = ("enableConsumeQueueExt", "enableLmq", "enableMultiDispatch", "messageIndexEnable")
_LEVELS, _LOG_PATHS = "messageDelayLevel", "storePathCommitLog"
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_NUMBER = re.compile(r"[0-9]{1,13}")
_LEVEL = re.compile(r"([0-9]{1,9})([smhd])")


@dataclass(frozen=True, slots=True)
class Given:
    """Settings under RocketMQ's names; what is not here is found from the bytes.

    `log_paths` are the directories of the log as they are written in the settings.
    """

    numbers: Mapping[str, int] = field(default_factory=dict)
    switches: Mapping[str, bool] = field(default_factory=dict)
    delay_level: str | None = None
    log_paths: tuple[str, ...] = ()

    def with_numbers(self, **numbers: int | None) -> Given:
        """Return the same with further numbers, those that are not None."""
        told = {name: number for name, number in numbers.items() if number is not None}
        return Given({**self.numbers, **told}, self.switches, self.delay_level, self.log_paths)


def read_given(settings: Mapping[str, str], *, source: str) -> Given:
    """Return what settings (`name=value`, RocketMQ's names) say; others are ignored. Raises InspectError."""
    numbers, switches = {}, {}
    for name in _NUMBERS:
        if name in settings:
            text = settings[name]
            if not (_NUMBER.fullmatch(text) and 0 < int(text) < 1 << 40):
                raise InspectError(f"{source!r} says {name}={text!r}; give a positive number")
            numbers[name] = int(text)
    for name in _SWITCHES:
        if name in settings:
            if settings[name].lower() not in ("true", "false"):
                raise InspectError(f"{source!r} says {name}={settings[name]!r}; give true or false")
            switches[name] = settings[name].lower() == "true"
    level = settings.get(_LEVELS)
    if level is not None:
        delays_of(level, source=source)
    paths = tuple(filter(None, (path.strip() for path in settings.get(_LOG_PATHS, "").split(","))))
    return Given(numbers, switches, level, paths)


def read_settings_file(path: str) -> Given:
    """Return what a broker's file of settings says. Raises InspectError."""
    try:
        with Path(path).open("rb") as file:
            stored = file.read(_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InspectError(f"cannot read the broker's settings {path!r}: {reason}; check the path") from error
    if len(stored) > _BYTES_MAX:
        raise InspectError(f"{path!r} is too long for a file of settings; give the broker's name=value file")
    return read_given(parse_settings(stored.decode("utf-8", "replace")), source=path)


def delays_of(level: str, *, source: str) -> tuple[int, ...]:
    """Return the delays (ms) of a table of levels such as `1s 5s 2h`. Raises InspectError."""
    found = [_LEVEL.fullmatch(text) for text in level.split(" ")]
    if not all(found):
        raise InspectError(f"{source!r} says messageDelayLevel={level!r}; give times such as 1s 5m 2h 1d")
    return tuple(int(match[1]) * _UNITS_MS[match[2]] for match in found if match)
