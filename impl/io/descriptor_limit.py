"""More file descriptors when they run out: each mapping keeps one, and a store has a file for each queue.

The soft limit of a process is often 1,024 while it may have half a million. The JVM raises it when it starts; here it
is raised when it is met, so that who never meets it is left alone.
"""

import errno
import logging
import resource
from collections.abc import Callable
from typing import TypeVar

__all__ = ["with_descriptors"]

_LOG = logging.getLogger("tornpage.store")

Result = TypeVar("Result")


def with_descriptors(call: Callable[[], Result]) -> Result:
    """Return what a call returns that needs a descriptor; make it once more with the limit raised.

    Raises OSError (EMFILE) when the hard limit is met too.
    """
    try:
        return call()
    except OSError as error:
        if error.errno != errno.EMFILE or not _is_raised():
            raise
        return call()


def _is_raised() -> bool:
    """Raise the soft limit to the hard one; False if it is there already, or may not be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return False
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return False
    _LOG.info("descriptor_limit_raised from=%d to=%d", soft, hard)
    return True
