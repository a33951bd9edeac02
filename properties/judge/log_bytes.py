"""Compare the bytes of log files, whatever evidence they come from."""

__all__ = ["first_difference", "left_past"]


def first_difference(first: bytes, second: bytes) -> int:
    """Return at which position two contents begin to differ, the length of the shorter one if it begins the other."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(first), len(second)))


def left_past(end: int, base: int, stored: bytes) -> tuple[int, int] | None:
    """Return offset and value of the first byte past `end` that is not zero, in a log file that begins at `base`."""
    past = stored[max(0, end - base) :]
    if past == bytes(len(past)):
        return None
    left = past.lstrip(b"\0")
    return base + len(stored) - len(left), left[0]
