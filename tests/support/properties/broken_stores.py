"""Foreign stores: right ones with different ways to keep files, and one for each mistake.

`tests/properties/explore/foreign/test_targets.py` names them by this file.
"""

import importlib.util
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tornpage.properties.foreign.reference_store import ReferenceStore

_TOY = Path(__file__).resolve().parents[3] / "examples" / "toy_store.py"
_spec = importlib.util.spec_from_file_location("_toy_store", _TOY)
assert _spec is not None
assert _spec.loader is not None
_toy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_toy)


class Mended(_toy.ToyStore):  # type: ignore[misc, name-defined]
    """The toy without its bug."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        os.fsync(os.open(directory, os.O_RDONLY))


# ---- right in other ways ---------------------------------------------------------------------------------------------


class Rewrites:
    """Each put writes all messages to a new file, in its own directory, and renames it."""

    def __init__(self, directory: Path, sync_flags: int = 0) -> None:
        self.promises = {"durable": "put", "index": True}
        self._top, self._directory, self._flags = directory, directory / "data", sync_flags
        self._directory.mkdir(exist_ok=True)
        self._sync(self._top)
        self._path = self._directory / "all"
        self._puts: list[Any] = json.loads(self._path.read_text()) if self._path.exists() else []
        self._store = ReferenceStore()
        for topic, queue, body, keys in self._puts:
            self._store.put(topic, queue, bytes.fromhex(body), keys)
        self._save()

    def _sync(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    def _save(self) -> None:
        new = self._directory / "new"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | self._flags)
        os.write(descriptor, json.dumps(self._puts).encode())
        if not self._flags:
            os.fsync(descriptor)
        os.close(descriptor)
        os.rename(new, self._path)
        self._sync(self._directory)

    def put(self, topic: str, queue: int, body: bytes, keys: Sequence[str]) -> tuple[int, int]:
        self._puts.append((topic, queue, body.hex(), list(keys)))
        self._save()
        return self._store.put(topic, queue, body, keys)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def writes_synchronously(directory: Path) -> Rewrites:
    return Rewrites(directory, os.O_DSYNC)


class Unsynced(Rewrites):
    """Renames without a sync of the new file: after a power loss the name may lead to no data."""

    def _sync(self, path: Path) -> None:
        if path != self._directory:
            super()._sync(path)


class Writes(_toy.ToyStore):  # type: ignore[misc, name-defined]
    """Opens its existing file for reading and writing only, as any process may."""

    def __init__(self, directory: Path) -> None:
        self.file, self.end = os.open(directory, os.O_RDONLY), 0
        self.bodies: dict[int, bytes] = {}
        self.queues: dict[tuple[str, int], list[int]] = {}

    def put(self, topic: str, queue: int, body: bytes, keys: Sequence[str]) -> Any:
        return 0, 0


class Linked(Mended):
    """Gives its file a second name by a symbolic link, for which no power loss can be made."""

    def put(self, topic: str, queue: int, body: bytes, keys: Sequence[str]) -> Any:
        path = Path(os.readlink(f"/proc/self/fd/{self.file}"))
        if not path.with_name("again").exists():
            path.with_name("again").symlink_to(path)
        return super().put(topic, queue, body, keys)


# ---- wrong -----------------------------------------------------------------------------------------------------------


class CountsAnew(Mended):
    """Numbers of queues begin at 0 again after each open."""

    def put(self, topic: str, queue: int, body: bytes, keys: Sequence[str]) -> Any:
        offset, number = super().put(topic, queue, body, keys)
        self.here = getattr(self, "here", -1) + 1
        return offset, min(number, self.here)


class ForgetsTheLast(Mended):
    """Opens with one message less than it has."""

    def message_at(self, data: bytes, start: int) -> bytes | None:
        message: bytes | None = super().message_at(data, start)
        return message if message and super().message_at(data, start + 8 + len(message)) else None


class Swaps(Mended):
    """Returns the first message without its content."""

    def get(self, offset: int) -> bytes | None:
        return b"" if offset == 0 and self.bodies else self.bodies.get(offset)


class FindsTooMuch(Rewrites):
    """Finds every message of a topic by any key."""

    def find(self, topic: str, key: str) -> list[bytes]:
        return [bytes.fromhex(body) for its_topic, _, body, _ in self._puts if its_topic == topic]


class SameOffset(Mended):
    def put(self, topic: str, queue: int, body: bytes, keys: Sequence[str]) -> Any:
        return 0, super().put(topic, queue, body, keys)[1]


class Refuses(Mended):
    def flush(self) -> None:
        raise OSError("no flush today")


class Dies(Mended):
    def flush(self) -> None:
        print("about to die", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)


class Hangs(Mended):
    def flush(self) -> None:
        while True:
            signal.pause()


class WillNotOpenAgain(Mended):
    def __init__(self, directory: Path) -> None:
        if (directory / "messages").exists():
            raise RuntimeError("who was here before?")
        super().__init__(directory)


class OddAnswer(Mended):
    def get(self, offset: int) -> Any:
        return "text"


class PromisesTheMoon(Mended):
    promises = MappingProxyType({"durabel": "put"})


class ComesBack(Mended):
    """A forgotten message reappears two opens later."""

    def __init__(self, directory: Path) -> None:
        lives = directory / "lives"
        count = len(lives.read_text()) if lives.exists() else 0
        lives.write_text("x" * (count + 1))
        self.hides = count == 1
        super().__init__(directory)

    promises = MappingProxyType({"durable": "nothing", "kill": "nothing", "queues": False})

    def get(self, offset: int) -> bytes | None:
        return None if self.hides else self.bodies.get(offset)
