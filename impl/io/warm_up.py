"""Populating the pages of a new log file before its first record."""

from tornpage.impl.config.policy import PAGE_BYTES, AllocationPolicy, FlushDiskType, WarmUp
from tornpage.impl.io.files import Files, Mapping, OpenFile

__all__ = ["warm_up"]

_STEP_PAGES = 256
"""1 MiB at a time. Touching it takes 1 ms, during which puts wait for the interpreter; populating does not."""


def warm_up(
    files: Files, file: OpenFile, mapping: Mapping, *, policy: AllocationPolicy, flush_disk_type: FlushDiskType
) -> bool:
    """Warm the whole mapping by the policy, lock it into memory and give MADV_WILLNEED.

    The file must hold only zeros: a touch stores a zero. Returns whether the pages are locked, which the system may
    refuse. With WarmUp.NONE nothing is done. Raises OSError if a sync fails. Source: `MappedFile.warmMappedFile`.
    """
    if policy.warm_up is WarmUp.NONE:
        return False
    if policy.warm_up is WarmUp.POPULATE:
        _populate(files, mapping)
    else:
        _touch(files, file, mapping, policy, flush_disk_type)
    is_locked = files.lock_memory(mapping)
    files.advise_will_need(mapping)
    return is_locked


def _populate(files: Files, mapping: Mapping) -> None:
    size_bytes, step = len(mapping.view), _STEP_PAGES * PAGE_BYTES
    for position in range(0, size_bytes, step):
        files.populate(mapping, position, min(step, size_bytes - position))


def _touch(
    files: Files, file: OpenFile, mapping: Mapping, policy: AllocationPolicy, flush_disk_type: FlushDiskType
) -> None:
    file_pages = -(-len(mapping.view) // PAGE_BYTES)
    syncs = policy.warm_up_syncs(file_pages=file_pages, flush_disk_type=flush_disk_type)
    done = 0
    for pages in syncs or (file_pages,):
        _store_zeros(mapping.view, done, done + pages)
        done += pages
        if syncs:
            files.sync(file)


def _store_zeros(view: memoryview, first_page: int, end_page: int) -> None:
    for page in range(first_page, end_page, _STEP_PAGES):
        stop = min(page + _STEP_PAGES, end_page)
        view[page * PAGE_BYTES : stop * PAGE_BYTES : PAGE_BYTES] = bytes(stop - page)
