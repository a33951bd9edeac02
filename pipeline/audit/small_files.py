"""Read the small files of a store: deleted topics, derived floor, progress."""

from __future__ import annotations

from tornpage.pipeline.audit.findings import AuditFinding, finding_of
from tornpage.properties.decode.deleted_topics import parse_deleted_topics
from tornpage.properties.decode.derived_floor import parse_derived_floor
from tornpage.properties.decode.files import read_small
from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.store import StoreView
from tornpage.properties.inspect.groups import group_rows
from tornpage.properties.inspect.query import Query
from tornpage.properties.inspect.small import config_files

__all__ = ["DELETED_TOPICS", "DERIVED_FLOOR", "deleted_topics", "small_findings"]

DELETED_TOPICS = "config/deletedTopics"
DERIVED_FLOOR = "config/derivedFloor"
_BYTES_MAX = 64 << 20


def deleted_topics(name: str, view: StoreView) -> tuple[dict[str, int], list[AuditFinding]]:
    """Return the offset below which records of each deleted topic need no unit."""
    try:
        stored = read_small(view.store_dir / DELETED_TOPICS, _BYTES_MAX)
        said = {} if stored is None else parse_deleted_topics(stored)
    except PermissionError:
        return {}, []  # a file that cannot be read is among `small_findings`
    except (OSError, ValueError) as error:
        return {}, [finding_of(name, "CFG_DELETED_UNREADABLE", "damage", DELETED_TOPICS, detail=str(error))]
    return {topic.decode("utf-8", "replace"): offset for topic, offset in said.items()}, []


def small_findings(name: str, view: StoreView) -> list[AuditFinding]:
    """Return the errors of the files below `config`."""
    query = Query(limit=None)
    found: list[Finding] = []
    if (view.store_dir / "config").is_dir():
        documents = (config_files(view, None, query), group_rows(view, None, query))
        found = [Finding(**each) for document in documents for each in document["findings"]]
    found = [each for each in dict.fromkeys(found) if each.code.startswith("CFG_") or each.file.startswith("config")]
    try:
        stored = read_small(view.store_dir / DERIVED_FLOOR, _BYTES_MAX)
        if stored is not None:
            parse_derived_floor(stored)
    except ValueError as error:
        remedy = "none: the next clean exit writes it again"
        found.append(Finding("FLOOR_UNREADABLE", "note", DERIVED_FLOOR, None, str(error), remedy))
    except OSError:
        pass  # an unreadable file was reported above
    return [
        AuditFinding(
            name, each.code, each.severity, each.file, None, None, None, None, None, 1, each.message, each.remedy
        )
        for each in found
    ]
