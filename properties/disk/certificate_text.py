"""The claims of a certificate as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tornpage.properties.disk.journal import SECTORS

if TYPE_CHECKING:
    from tornpage.properties.disk.certificate import Certificate, FileClaim, OperationClaim, Origin, PageClaim

__all__ = ["sentences_of"]


def sentences_of(certificate: Certificate) -> list[str]:
    """Return one sentence per operation, size and in-flight page."""
    sentences = [_operation_sentence(operation) for operation in certificate.operations]
    for file in certificate.files:
        sentences += [_size_sentence(file), *(_page_sentence(file, page, certificate.disk) for page in file.pages)]
    return sentences


def _operation_sentence(claim: OperationClaim) -> str:
    rest = ", and the file is at its old name too" if claim.keeps_source else ""
    subject = f"directory operation of entry {claim.entry}"
    if claim.durable_since is not None:
        return f"{subject}: durable since the sync at entry {claim.durable_since}{rest}"
    return f"{subject} in {claim.directory}: survived, {_between(claim, claim.entry)}{rest}"


def _size_sentence(claim: FileClaim) -> str:
    source = "initial size" if claim.sized_by == "base" else f"set at entry {claim.sized_by}"
    return f"{claim.path}: {claim.size_bytes} bytes, {source}, {_between(claim, claim.sized_by)}"


def _page_sentence(file: FileClaim, claim: PageClaim, disk: str) -> str:
    subject = f"page {claim.page} of {file.path}"
    if claim.dropped_by is not None and disk != "kill":
        subject += f", counted as clean since the failed sync at entry {claim.dropped_by}"
    if disk == "kill":
        return f"{subject}: latest {_version(claim.versions[0])}; the page cache survives a process kill"
    if claim.mask is None:
        return f"{subject}: {_version(claim.versions[0])}, {_around(file, claim, claim.versions[0])}"
    first, second = claim.versions
    sectors = ", ".join(str(sector) for sector in range(SECTORS) if claim.mask >> sector & 1)
    newest = max(number for number in claim.versions if number != "base")  # at least one of the two is an entry
    torn = f"torn: sectors {sectors} of the {_version(second)}, the others of the {_version(first)}"
    return f"{subject}: {torn}, {_around(file, claim, newest)}"


def _around(file: FileClaim, page: PageClaim, origin: Origin) -> str:
    """Return the syncs around a version of a page; a sync skips pages that count as clean."""
    before = file.barrier_before
    if page.dropped_by is None or before is None or (origin != "base" and origin > before):
        return _between(file, origin)
    return f"skipped by the sync at entry {before}, {_after(file)}"


def _version(origin: Origin) -> str:
    return "initial content" if origin == "base" else f"version written at entry {origin}"


def _between(claim: FileClaim | OperationClaim, origin: Origin) -> str:
    before = claim.barrier_before
    after = _after(claim)
    if before is None:
        return "never synced before the crash" + ("" if claim.barrier_after is None else f", {after}")
    if origin == "base" or origin < before:
        return f"last synced at entry {before}, {after}"
    return f"after the last sync at entry {before}, {after}"


def _after(claim: FileClaim | OperationClaim) -> str:
    return "no sync after that" if claim.barrier_after is None else f"next sync at entry {claim.barrier_after}"
