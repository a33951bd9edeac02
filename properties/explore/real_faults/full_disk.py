"""Fill a disk: the store must answer with a status, keep serving, and resume with room.

On a small disk, a memory file system or an ext4, a store puts until the last block is used. It reads, flushes, and puts
again after a ballast file is removed, without a restart. Then the disk is filled again, and the store is closed,
opened, read and closed on it. RocketMQ's answers for this are CREATE_MAPEDFILE_FAILED and SERVICE_NOT_AVAILABLE
(docs/statuses.md). A store that writes to a mapped page without a block dies by SIGBUS instead, which the parent would
see.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.files import Files
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import PutResult, PutStatus
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.explore.real_faults.children import Page, in_child
from tornpage.properties.explore.real_faults.mounts import Unavailable
from tornpage.properties.explore.real_faults.report import FaultReport
from tornpage.properties.explore.real_faults.small_disk import Kind, SmallDisk, small_disk
from tornpage.properties.explore.real_faults.writer import Writer, config_of, judge_log, knows

__all__ = ["FILE_BYTES", "PUTS_MAX", "UNWATCHED", "full_disk"]

FILE_BYTES = (64 << 10, 128 << 10, 256 << 10)
PUTS_MAX = 10_000
LARGE_BODY_BYTES = 8_000
REFUSALS = 5
"""Puts requested after the last block is used. Small ones might still fit into the current file."""

_FULL = (PutStatus.CREATE_MAPEDFILE_FAILED, PutStatus.SERVICE_NOT_AVAILABLE)
UNWATCHED = {"disk_space_warning_level_ratio": 1.0}
"""No disk is fuller than full, so that the log reaches the end of the disk."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Describe one configuration that meets the full disk."""

    name: str
    config: MessageStoreConfig
    kind: Kind = "tmpfs"


def variants(file_bytes: int) -> list[Variant]:
    """Return the configurations, without those that need a setting this store does not have."""
    found = [
        Variant("sync", config_of(file_bytes=file_bytes, sync=True, **UNWATCHED)),
        Variant("async", config_of(file_bytes=file_bytes, sync=False, **UNWATCHED)),
        Variant("disk watch", config_of(file_bytes=file_bytes, sync=True, clean_resource_interval=1)),
    ]
    for name, setting, value in (
        ("files ahead", "mapped_files_ahead", 2),
        ("pool", "transient_store_pool_enable", True),
    ):
        if knows(setting):
            config = config_of(file_bytes=file_bytes, sync=False, **UNWATCHED, **{setting: value})
            found.append(Variant(name, config))
    ext4 = (replace(variant, name=f"{variant.name} on ext4", kind="ext4") for variant in found[:2])
    return [*found, *ext4]


def full_disk(report: FaultReport, directory: str, rng: random.Random, *, files: Callable[[], Files] = OsFiles) -> None:
    """Fill a disk under each variant.

    The fault is hit when a put was refused for lack of space, and effective when a put succeeded after space was freed.
    """
    for variant in variants(rng.choice(FILE_BYTES)):
        seed = rng.randrange(1 << 32)
        try:
            with small_disk(directory, variant.name.replace(" ", "-"), kind=variant.kind) as disk:
                _fill_and_judge(report, variant.name, _Processes(variant.config, disk, files, seed))
        except GuaranteeBroken as broken:
            broken.sentence = f"{broken.sentence} ({variant.name})"
            raise
        except Unavailable as missing:
            if variant.kind == "tmpfs":
                raise
            report.seen.append(f"{variant.name}: skipped, {missing}")


def _fill_and_judge(report: FaultReport, name: str, life: "_Processes") -> None:
    report.enabled += 1
    page, disk = Page(), life.disk
    try:
        _live(page, life.fills_up)
        _live(page, life.opens_without_room)
        judge_log(disk.store, page)
        disk.unload()
        _live(page, life.opens_with_room)
        judge_log(disk.store, page)
    finally:
        told = page.facts
        report.hit += bool(told.get("refused_as"))
        report.effective += bool(told.get("stored_again"))
        answers = ", ".join(told.get("refused_as", ())) or "nothing refused"
        report.seen.append(f"{name}: {len(page.stored)} puts stored, then {answers}")


def _live(page: Page, work: Callable[[Page], None]) -> None:
    """Run one process, which has to end by itself on a full disk (contract 8)."""
    ending = in_child(page, work)
    if ending.signal is not None:
        raise GuaranteeBroken(8, f"the process died by {ending.signal} in {page.verb}", "a status", ending.signal)


@dataclass(frozen=True, slots=True)
class _Processes:
    """Define what the processes of one variant do."""

    config: MessageStoreConfig
    disk: SmallDisk
    files: Callable[[], Files]
    seed: int

    def _writer(self, page: Page) -> Writer:
        return Writer(
            page, self.disk.store, self.config, rng=random.Random(self.seed + len(page.stored)), files=self.files()
        )

    def fills_up(self, page: Page) -> None:
        """Put until the disk is full, twice, freeing space in between; close on the full disk."""
        writer = self._writer(page)
        refused_as = self._fill(writer)
        page.tell(refused_as=sorted(refused_as))
        writer.check_promised_messages("while the disk is full")
        self.disk.unload()
        result = writer.put_until_stored()
        if result.status is not PutStatus.PUT_OK:
            raise GuaranteeBroken(8, "puts are refused although there is room again", "PUT_OK", result.status.name)
        page.tell(stored_again=True)
        self._fill(writer)
        self._close(writer)

    def opens_without_room(self, page: Page) -> None:
        """Open the closed store on the full disk."""
        writer = self._writer(page)
        writer.check_promised_messages("after an open on the full disk")
        self._expect_status(writer.put())
        self._close(writer)

    def opens_with_room(self, page: Page) -> None:
        """Open the store with space and continue."""
        writer = self._writer(page)
        writer.check_promised_messages("after the last open")
        result = writer.put_until_stored()
        if result.status is not PutStatus.PUT_OK:
            raise GuaranteeBroken(8, "puts are refused although there is room", "PUT_OK", result.status.name)
        self._close(writer)

    def _fill(self, writer: Writer) -> set[str]:
        """Put until refused and take the remaining space; return how the store refuses."""
        answers = [writer.put_until(lambda result: not result.stored, tries=PUTS_MAX)]
        self.disk.fill()
        answers += [writer.put(LARGE_BODY_BYTES) for _ in range(REFUSALS)]
        refused_as = {self._expect_status(answer).name for answer in answers}
        if not writer.flush():
            raise GuaranteeBroken(
                8, "a flush on the full disk fails although every block is allocated", "durable", "not"
            )
        return refused_as - {PutStatus.PUT_OK.name}

    @staticmethod
    def _expect_status(result: PutResult) -> PutStatus:
        if not result.stored and result.status not in _FULL:
            expected = " or ".join(status.name for status in _FULL)
            raise GuaranteeBroken(8, "a put on the full disk gets an unexpected answer", expected, result.status.name)
        return result.status

    @staticmethod
    def _close(writer: Writer) -> None:
        reason = writer.close()
        if reason is not None:
            raise GuaranteeBroken(
                8, "close on the full disk is not clean although every block is allocated", "", reason
            )
