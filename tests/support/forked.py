"""Runs something in a forked child, where limits and rights may be given up for good."""

import os
import resource
from collections.abc import Callable

__all__ = ["answer_of_child", "forbid_locked_memory"]

_NOBODY = 65534


def answer_of_child(action: Callable[[], str]) -> str:
    """Return what the action answers in a child of this process. Raises AssertionError with the child's exception."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        answer = "child died"
        try:
            answer = "done " + action()
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        finally:
            os.write(writer, answer.encode()[:60_000])
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(child, 0)
    assert answer.startswith("done "), answer
    return answer.removeprefix("done ")


def forbid_locked_memory(limit_bytes: int) -> None:
    """Let this process, a child, lock so many bytes and no more; the rights of root, which no limit binds, go too."""
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit_bytes, limit_bytes))
    if os.getuid() == 0:
        os.setuid(_NOBODY)
