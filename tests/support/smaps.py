"""Figures of the kernel about the memory of this process, for each mapping."""

from pathlib import Path

__all__ = ["kib_of"]


def kib_of(path: str, *fields: str) -> list[int]:
    """Return fields of the only mapping of a file, in KiB, such as Rss and Locked.

    Source: proc(5).
    """
    blocks: list[list[str]] = []
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        if not line.split(" ", 1)[0].endswith(":"):
            blocks.append([])
        blocks[-1].append(line)
    (block,) = [block for block in blocks if block[0].endswith(f" {path}")]
    found = {line.split(":")[0]: line.split(":")[1].split() for line in block[1:]}
    return [int(found[field][0]) for field in fields]
