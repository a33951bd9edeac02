"""Comparing queues and index with the checksums of the derived floor; every byte is read."""

from collections.abc import Iterable
from itertools import pairwise

from isal.isal_zlib import crc32

from tornpage.impl.dispatch.derived_floor import DerivedProof
from tornpage.impl.index.index_layout import HEADER_BYTES, IndexFileProof, IndexHeader, IndexLayout, is_index_name
from tornpage.impl.io.files import Files
from tornpage.impl.queue.consume_queues import QueueFileProof

__all__ = ["checksums_hold"]

_CHUNK_BYTES = 1 << 20


def checksums_hold(
    files: Files, root: str, proof: DerivedProof, *, queue_file_bytes: int, layout: IndexLayout | None
) -> bool:
    """Return whether every file that a proof names still begins with the bytes it names.

    Further bytes may follow them. `layout` is None if the store has no index. Cost: each byte is read once. Raises
    OSError.
    """
    directories = {each.path.rpartition("/")[0] for each in proof.queue_files}
    return (
        all(_has_no_gap(files, f"{root}/{directory}", queue_file_bytes) for directory in directories)
        and all(_is_queue_file(files, root, each, queue_file_bytes) for each in proof.queue_files)
        and (layout is None or _is_index(files, root, proof.index_files, layout))
    )


def _has_no_gap(files: Files, directory: str, size_bytes: int) -> bool:
    """Return whether the files of a queue are contiguous; no file before a gap can be trusted."""
    paths = [f"{directory}/{name}" for name in (files.list_directory(directory) if files.stat(directory) else ())]
    there = {path: files.stat(path) for path in paths}
    bases = sorted(
        int(path.rpartition("/")[2])
        for path, stat in there.items()
        if stat is not None and stat.size_bytes == size_bytes and path.rpartition("/")[2].isdigit()
    )
    return all(before + size_bytes == after for before, after in pairwise(bases))


def _is_queue_file(files: Files, root: str, proof: QueueFileProof, size_bytes: int) -> bool:
    return _has(files, f"{root}/{proof.path}", size_bytes, 0, proof.size_bytes, proof.crc)


def _is_index(files: Files, root: str, proofs: tuple[IndexFileProof, ...], layout: IndexLayout) -> bool:
    """Return whether the index files are the proven ones.

    Another file among them would count as part of the index.
    """
    if not proofs:
        return True
    directory, _, newest = f"{root}/{proofs[-1].path}".rpartition("/")
    there = files.list_directory(directory) if files.stat(directory) else []
    names = [name for name in there if is_index_name(name) and name <= newest]
    return names == [proof.path.rpartition("/")[2] for proof in proofs] and all(
        _is_index_file(files, root, proof, layout, is_last=proof is proofs[-1]) for proof in proofs
    )


def _is_index_file(files: Files, root: str, proof: IndexFileProof, layout: IndexLayout, *, is_last: bool) -> bool:
    path = f"{root}/{proof.path}"
    start, end = layout.position_of(1), layout.position_of(proof.header.next_number)
    if not _has(files, path, layout.file_bytes, start, end, proof.crc):
        return False
    data = b"".join(_pieces(files, path, 0, HEADER_BYTES))
    return data == proof.header.encode() or (is_last and _is_later_header(data, proof.header, layout))


def _is_later_header(data: bytes, header: IndexHeader, layout: IndexLayout) -> bool:
    """Return whether later writes to the same file can have produced a header."""
    found = IndexHeader.decode(data, entries_max=layout.entries_max)
    begin = found.begin_timestamp, found.begin_offset
    return found.next_number > header.next_number and (
        header.next_number == 1 or begin == (header.begin_timestamp, header.begin_offset)
    )


def _has(files: Files, path: str, size_bytes: int, start: int, end: int, crc: int) -> bool:
    stat = files.stat(path)
    if stat is None or stat.kind != "file" or stat.size_bytes != size_bytes or end > size_bytes:
        return False
    found = 0
    for piece in _pieces(files, path, start, end):
        found = crc32(piece, found)
    return found == crc


def _pieces(files: Files, path: str, start: int, end: int) -> Iterable[bytes]:
    file = files.open(path, writable=False)
    try:
        for position in range(start, end, _CHUNK_BYTES):
            yield files.read(file, position, min(_CHUNK_BYTES, end - position))
    finally:
        files.close(file)
