"""Finding bytes other than zero."""

__all__ = ["CHUNK_BYTES", "first_nonzero"]

CHUNK_BYTES = 1 << 16
_ZEROS = bytes(CHUNK_BYTES)


def first_nonzero(view: memoryview, position: int) -> int | None:
    """Return the position of the first nonzero byte from `position` on, None if there is none."""
    for start in range(position, len(view), CHUNK_BYTES):
        chunk = view[start : start + CHUNK_BYTES]
        if not _ZEROS.startswith(chunk):  # compares without a copy, unlike `==` of a view
            return start + len(chunk) - len(bytes(chunk).lstrip(b"\0"))
    return None
