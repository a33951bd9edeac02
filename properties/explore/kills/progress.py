"""Share a page between a session and the judging process: progress and error."""

import mmap
import struct

__all__ = ["OPERATIONS_MAX", "Progress"]

OPERATIONS_MAX = 128
_NUMBER = struct.Struct("=q")
_BEGUN, _RETURNED, _KILLS, _ENDED = 0, 8, 16, 24
_ERROR, _ERROR_BYTES = 64, 960
_ENDS = 1024
_STEPS = _ENDS + _NUMBER.size * (OPERATIONS_MAX + 1)
_PAGE_BYTES = _STEPS + _NUMBER.size * (OPERATIONS_MAX + 2)


class Progress:
    """Represent the shared page.

    Operation 0 opens the store, operation n is number n - 1; -1 means none.
    """

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _PAGE_BYTES)
        self.reset()

    def _get(self, at: int) -> int:
        (value,) = _NUMBER.unpack_from(self._page, at)
        return int(value)

    def reset(self) -> None:
        """Forget the previous process; called by the parent."""
        self._page[:] = bytes(_PAGE_BYTES)
        _NUMBER.pack_into(self._page, _BEGUN, -1)
        _NUMBER.pack_into(self._page, _RETURNED, -1)

    @property
    def begun(self) -> int:
        """Return the last operation that began."""
        return self._get(_BEGUN)

    @property
    def returned(self) -> int:
        """Return the last operation that returned."""
        return self._get(_RETURNED)

    def steps_of(self, verb: int) -> int:
        """Return the number of steps of a rehearsed operation, up to the start of the next one."""
        begins, ends = (self._get(_STEPS + _NUMBER.size * number) for number in (verb, verb + 1))
        return ends - begins

    @property
    def kills(self) -> bool:
        """Return whether the session came to the step at which it dies."""
        return bool(self._get(_KILLS))

    @property
    def has_ended(self) -> bool:
        """Return whether the session completed its operations or failed with an exception."""
        return bool(self._get(_ENDED))

    @property
    def error(self) -> str:
        """Return the exception that ended the process, or an empty string."""
        return bytes(self._page[_ERROR : _ERROR + _ERROR_BYTES]).rstrip(b"\0").decode("utf-8", "replace")

    def end_of(self, verb: int) -> int:
        """Return the offset after the records of a returned operation, or after the whole log.

        It is -1 if the operation has none.
        """
        return self._get(_ENDS + _NUMBER.size * verb)

    def begin(self, verb: int, *, steps: int) -> None:
        """Publish that an operation is called next, and the number of steps so far."""
        self.count(verb, steps)
        _NUMBER.pack_into(self._page, _BEGUN, verb)

    def end(self, verb: int, end_offset: int) -> None:
        """Publish that an operation returned, and its answer."""
        _NUMBER.pack_into(self._page, _ENDS + _NUMBER.size * verb, end_offset)
        _NUMBER.pack_into(self._page, _RETURNED, verb)

    def fail(self, error: BaseException) -> None:
        """Keep the text of an exception."""
        text = f"{type(error).__name__}: {error}".encode(errors="backslashreplace")[:_ERROR_BYTES]
        self._page[_ERROR : _ERROR + len(text)] = text

    def count(self, verb: int, steps: int) -> None:
        """Publish the number of steps before an operation began."""
        _NUMBER.pack_into(self._page, _STEPS + _NUMBER.size * verb, steps)

    def note_kill(self) -> None:
        """Publish that the session is at the step at which it dies."""
        _NUMBER.pack_into(self._page, _KILLS, 1)

    def note_end(self) -> None:
        """Publish that the session completed its operations or failed."""
        _NUMBER.pack_into(self._page, _ENDED, 1)
