"""Run an action in a forked child that may give up limits and rights for good."""

import os
import resource
from collections.abc import Callable

__all__ = ["answer_of_child", "forbid_locked_memory"]

_NOBODY = 65534


def answer_of_child(action: Callable[[], str]) -> str:
    """Return the result of the action in a child. Raises AssertionError with its exception."""
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
    """Limit the memory that this process, a child, may lock; give up the rights of root too.

    No limit binds root.
    """
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit_bytes, limit_bytes))
    if os.getuid() == 0:
        os.setuid(_NOBODY)
