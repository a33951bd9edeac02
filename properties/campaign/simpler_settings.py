"""Simpler settings: what a shrinker tries with the store and the disk of a case."""

from collections.abc import Iterator
from dataclasses import fields, replace

from model.message import record_bytes
from properties.campaign.variations import with_field, with_puts
from properties.program.bodies import message_of
from properties.program.case import Case, Put, Settings

__all__ = ["simpler_settings", "smaller_capacities"]

_SMALLER_FILES = (1024, 2048, 4096, 8192)
_NOT_SIMPLIFIED = ("file_bytes", "record_bytes_max", "disk", "bug", "target", "answer_seconds")
_CAPACITIES = {"queue_units": (1, 2, 4), "index_entries": (2, 3, 5, 10), "light_queues_max": (1,), "files_max": (2,)}


def simpler_settings(case: Case) -> Iterator[Case]:
    """Smaller log files, with messages that shrink along or stay; then the default of each other setting.

    A store of other people has settings of its own, and none of these.
    """
    if case.settings.target:
        return
    for file_bytes in _SMALLER_FILES:
        if file_bytes < case.settings.file_bytes:
            smaller = replace(case, settings=replace(case.settings, file_bytes=file_bytes))
            ratio = file_bytes / case.settings.file_bytes
            yield with_puts(smaller, lambda put, r=ratio: _whole_scaled(put, case.settings, r))  # type: ignore[misc]
            yield with_puts(smaller, lambda put, r=ratio: replace(put, body_bytes=int(put.body_bytes * r)))  # type: ignore[misc]
            yield smaller
    default = Settings()
    for field in fields(Settings):
        usual = getattr(default, field.name)
        if field.name not in _NOT_SIMPLIFIED and getattr(case.settings, field.name) != usual:
            yield replace(case, settings=with_field(case.settings, field.name, usual))


def _whole_scaled(put: Put, settings: Settings, ratio: float) -> Put:
    """Scale the record, not its body alone, so that as many fit into a file as before."""
    overhead_bytes = record_bytes(message_of(put), trailer=settings.trailer) - put.body_bytes
    scaled_bytes = round((put.body_bytes + overhead_bytes) * ratio) - overhead_bytes
    return replace(put, body_bytes=min(put.body_bytes, max(0, scaled_bytes)))


def smaller_capacities(case: Case) -> Iterator[Case]:
    """Files that are full sooner: no simpler for themselves, but fewer operations may do then."""
    if case.settings.target:
        return
    for name, sizes in _CAPACITIES.items():
        for size in sizes:
            if size < getattr(case.settings, name):
                yield replace(case, settings=with_field(case.settings, name, size))
