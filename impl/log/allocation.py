"""Creating log files before they are needed. Source: `AllocateMappedFileService`."""

import contextlib
import errno
import logging
import threading
from concurrent.futures import Future

from tornpage.impl.config.policy import AllocationPolicy
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.log_files import LogFileMaker
from tornpage.impl.service.runner import RunnerFactory

__all__ = ["AllocateMappedFiles"]

_LOG = logging.getLogger("tornpage.store")

_WAIT_MS = 5_000
_RETRY_MS = 1_000


class _Request:
    """A requested file.

    `answer` is set while a put waits; `failure` is the error of the last attempt.
    """

    __slots__ = ("answer", "failure", "file", "retry_ms")

    def __init__(self) -> None:
        self.file: MappedFile | None = None
        self.failure: OSError | None = None
        self.answer: Future[None] | None = None
        self.retry_ms = 0


class AllocateMappedFiles:
    """Creates the next file and the ones after it, lowest offset first.

    Each is durable before the next begins. A failure affects only a put that needs this very file, and only while the
    failure lasts. RocketMQ keeps one flag for all files, and its thread ends for good at the first unexpected error.
    """

    name = "allocate"

    def __init__(self, maker: LogFileMaker, *, policy: AllocationPolicy, runner: RunnerFactory) -> None:
        self._maker = maker
        self._policy = policy
        self._requests: dict[int, _Request] = {}
        self._guard = threading.Lock()
        self._runner = runner(self)

    def take(self, base_offset: int) -> MappedFile:
        """Return the file that begins at an offset, ready for writes; request the next ones.

        Raises OSError if the file cannot be created within 5 s; the request then stays.
        """
        wanted = self._policy.wanted(file_index=base_offset // self._maker.file_bytes)
        if len(wanted) == 1 and base_offset not in self._requests:
            return self._maker.make(base_offset)
        with self._guard:
            for index in wanted:
                self._requests.setdefault(index * self._maker.file_bytes, _Request())
            request = self._requests[base_offset]
            answer = None
            if request.file is None:
                answer = request.answer = Future()
                request.failure = None
        if answer is not None:
            self._runner.wake()
            self._runner.wait(answer, timeout_ms=_WAIT_MS)
        with self._guard:
            request.answer = None
            if request.file is None:
                raise request.failure or OSError(
                    errno.ETIMEDOUT, f"not ready after {_WAIT_MS} ms", self._path(base_offset)
                )
            del self._requests[base_offset]
        if self._requests:
            self._runner.wake()
        return request.file

    def prepare(self, base_offset: int) -> None:
        """Create the file that begins at an offset, and keep it for the put that takes it.

        If that fails the put tries again.
        """
        try:
            self.give_back(self._maker.make(base_offset))
        except OSError as error:
            _LOG.warning("allocation_failed path=%r error=%r", self._path(base_offset), error.strerror)

    def give_back(self, file: MappedFile) -> None:
        """Keep a file that was taken and not written to."""
        with self._guard:
            request = self._requests[file.base_offset] = _Request()
            request.file = file

    def step(self, now_ms: int) -> int | None:
        """Create the lowest requested file; return when to continue, None if no file is missing."""
        with self._guard:
            missing = sorted(base for base, request in self._requests.items() if request.file is None)
            request = self._requests[missing[0]] if missing else None
        if request is None:
            return None
        if request.answer is None and now_ms < request.retry_ms:
            return request.retry_ms
        failure: OSError | None = None
        try:
            request.file = self._maker.make(missing[0])
        except OSError as error:
            failure, request.retry_ms = error, now_ms + _RETRY_MS
            _LOG.warning("allocation_failed path=%r error=%r", self._path(missing[0]), error.strerror)
            return request.retry_ms
        except Exception as error:
            # a defect of the store: the waiting put fails at once, and the runner logs the error
            failure = OSError(errno.EIO, f"{type(error).__name__}: {error}", self._path(missing[0]))
            raise
        finally:
            self._answer(request, failure)
        return now_ms if len(missing) > 1 else None

    def _answer(self, request: _Request, failure: OSError | None) -> None:
        """Give the result of a creation to the put that waits for it.

        A put that begins to wait clears the failure, so both change under the lock.
        """
        with self._guard:
            request.failure = failure
            answer, request.answer = request.answer, None
        if answer is not None:
            answer.set_result(None)

    def _path(self, base_offset: int) -> str:
        return self._maker.path_of(base_offset)

    def close(self) -> None:
        """Stop, and remove the unused files, newest first.

        The next open removes a file that stays.
        """
        self._runner.stop()
        for base_offset in sorted(self._requests, reverse=True):
            file = self._requests.pop(base_offset).file
            if file is not None:
                with contextlib.suppress(OSError):
                    self._maker.remove(file)
