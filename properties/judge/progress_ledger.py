"""The judges' memory of progress files: every version that was saved, and between which events that happened.

A save may fall anywhere inside the verb that made it, so a crash inside of that verb may leave the version before or
the new one; right after the answer only the new one. A version is compared by what it says, as `properties.decode`
reads it.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tornpage.properties.decode.config_files import load_config, parse_consumer_offsets, parse_delay_offsets
from tornpage.properties.program.log_places import ROOT

__all__ = [
    "CONSUMER_OFFSETS",
    "DELAY_OFFSETS",
    "LIGHT_CONSUMER_OFFSETS",
    "READERS",
    "LegalVersions",
    "ProgressLedger",
    "Said",
    "said_by",
    "torn_in",
]

CONSUMER_OFFSETS = f"{ROOT}/config/consumerOffset.json"
LIGHT_CONSUMER_OFFSETS = f"{ROOT}/config/lmqConsumerOffset.json"
DELAY_OFFSETS = f"{ROOT}/config/delayOffset.json"

Said = Hashable
"""What a version says: sorted pairs; () of a file that is not there."""

LegalVersions = Mapping[str, frozenset[Said]]
"""What each state file may say, by path."""


def _consumer_offsets(document: object) -> Said:
    return tuple(sorted(parse_consumer_offsets(document).items()))


def _delay_offsets(document: object) -> Said:
    return parse_delay_offsets(document)


READERS: dict[str, Callable[[object], Said]] = {
    DELAY_OFFSETS: _delay_offsets,
    CONSUMER_OFFSETS: _consumer_offsets,
    LIGHT_CONSUMER_OFFSETS: _consumer_offsets,
}
"""How the document of each state file is read; raises ValueError for one that has another shape."""


def said_by(files: Mapping[str, bytes], paths: Iterable[str]) -> dict[str, Said]:
    """Return what each state file says, its backup where it says nothing, () where that says nothing either."""
    return {path: _said(files, path) for path in paths}


def torn_in(files: Mapping[str, bytes], paths: Iterable[str]) -> frozenset[tuple[str, bytes]]:
    """Return name and content of each state file or backup that is there and says nothing: empty, torn, or else."""
    names = (name for path in paths for name in (path, f"{path}.bak"))
    return frozenset((name, files[name]) for name in names if name in files and not _is_document(files[name]))


@lru_cache(maxsize=1 << 10)
def _is_document(stored: bytes) -> bool:
    return load_config({"it": stored}, "it") is not None


def _said(files: Mapping[str, bytes], path: str) -> Said:
    names = (path, f"{path}.bak")
    return _said_by_bytes(path, tuple((name, files[name]) for name in names if name in files))


@lru_cache(maxsize=1 << 10)
def _said_by_bytes(path: str, there: tuple[tuple[str, bytes], ...]) -> Said:
    """Read a file and its backup: thousands of images have the same few."""
    document = load_config(dict(there), path)
    if document is None:
        return ()
    try:
        return READERS[path](document)
    except ValueError:
        return ("unreadable", repr(document))


@dataclass(frozen=True, slots=True)
class _Version:
    """One version, saved between the events `first` and `last`."""

    said: Said
    first: int
    last: int


class ProgressLedger:
    """The versions of each state file since the disk was opened; `there` is what the files said before that.

    Behind a kill `legal` has the versions that may have been on the disk then: until the event `until`, the end of the
    open that follows, a power loss may leave each of them, since nobody had synced what the dead process did last.
    """

    def __init__(self, there: Mapping[str, Said], *, legal: LegalVersions | None = None, until: int = -1) -> None:
        self._versions = {}
        for path, said in there.items():
            others = sorted((legal or {}).get(path, frozenset()) - {said}, key=repr)
            ends = [-1, *(until for _ in others)]
            self._versions[path] = [_Version(each, -1, end) for each, end in zip((*others, said), ends, strict=True)]

    @property
    def paths(self) -> tuple[str, ...]:
        """The state files that are remembered."""
        return tuple(self._versions)

    def saved(self, path: str, said: Said, first: int, last: int) -> None:
        """Say that a verb which spans the events from `first` to `last` has left this version."""
        versions = self._versions[path]
        if versions[-1].said != said:
            versions.append(_Version(said, first, last))

    def legal_versions(self, event: int) -> LegalVersions:
        """Return what each file may say after a crash at an event: the last one saved before, or one being saved."""
        return {path: frozenset(_legal(versions, event)) for path, versions in self._versions.items()}


def _legal(versions: list[_Version], event: int) -> Iterable[Said]:
    begun = [version for version in versions if version.first <= event]
    returned = max(number for number, version in enumerate(begun) if version.last <= event)
    return (version.said for version in begun[returned:])
