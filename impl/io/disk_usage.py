"""Reading the usage of a disk."""

import logging

from tornpage.impl.io.files import DiskUsage, Files

__all__ = ["disk_usage_of"]

_LOG = logging.getLogger("tornpage.store")


def disk_usage_of(files: Files, path: str) -> DiskUsage | None:
    """Return size and free bytes of the disk that holds a path.

    Returns None and logs a warning if they cannot be read.
    """
    try:
        usage = files.disk_usage(path)
    except OSError as error:
        _LOG.warning("disk_unreadable path=%r error=%r", path, error.strerror)
        return None
    if usage.total_bytes <= 0:
        _LOG.warning("disk_unreadable path=%r error='it has no size'", path)
        return None
    return usage
