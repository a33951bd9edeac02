"""Bugs in files made before they are needed (after 4.9.3)."""

from impl.allocation import AllocateMappedFiles
from impl.mapped_file import MappedFile
from impl.parts import Parts

__all__ = ["BUGS"]


class _OneFlagForAll(AllocateMappedFiles):
    """The failure of any file refuses every other, ready or not (4.9.3, `hasException`)."""

    def take(self, base_offset: int) -> MappedFile:
        for request in self._requests.values():
            if request.failure is not None:
                raise request.failure
        return super().take(base_offset)


class _EndsForGood(AllocateMappedFiles):
    """The service ends at its first error, and nobody makes a file any more (4.9.3)."""

    _ended = False

    def step(self, now_ms: int) -> int | None:
        if self._ended:
            return None
        due_ms = super().step(now_ms)
        self._ended = any(request.failure is not None for request in self._requests.values())
        return None if self._ended else due_ms


class _LastFirst(AllocateMappedFiles):
    """The file behind the next one is made before it, so that a crash between the two leaves a gap."""

    def step(self, now_ms: int) -> int | None:
        with self._guard:
            missing = sorted(base for base, request in self._requests.items() if request.file is None)
        if len(missing) > 1 and self._requests[missing[-1]].failure is None:
            self._requests[missing[-1]].file = self._maker.make(missing[-1])
            return now_ms
        return super().step(now_ms)


class _LeftBehind(AllocateMappedFiles):
    """Files that nobody took stay behind a clean exit."""

    def close(self) -> None:
        self._runner.stop()
        for request in self._requests.values():
            if request.file is not None:
                request.file.close()
        self._requests.clear()


BUGS = (
    ("one-flag-for-all-files", "a file that cannot be made refuses another that is ready", 8,
     Parts({AllocateMappedFiles: _OneFlagForAll})),
    ("allocation-ends", "after one error no file is made any more", 8, Parts({AllocateMappedFiles: _EndsForGood})),
    ("last-file-first", "the file behind the next one is made before it", 7, Parts({AllocateMappedFiles: _LastFirst})),
    ("prepared-left-behind", "prepared files stay behind a clean exit", 2, Parts({AllocateMappedFiles: _LeftBehind})),
)  # fmt: skip
