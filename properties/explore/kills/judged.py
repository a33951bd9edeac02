"""Which directories of a run were judged, and held: one that is left again, byte for byte, is not judged again.

What the judges say is a function of content, settings, time and the log that survived; two kills often leave the same,
and more often what their recoveries leave is the same: that is not recovered again either. Every twentieth time it is
judged, or recovered again, all the same.
"""

from tornpage.impl.parts import Parts
from tornpage.model.state import CommitLog
from tornpage.properties.explore.kills.judge import LegalLogs, judge_directory
from tornpage.properties.explore.kills.snapshot import Snapshot, digest_of
from tornpage.properties.judge.rulings import require
from tornpage.properties.program.case import Settings

__all__ = ["AGAIN_EVERY", "Judged"]

AGAIN_EVERY = 20
"""What is known is judged, or recovered again, each so many times all the same."""

_Key = tuple[bytes, Settings, int]


class Judged:
    """The memory of the cycles of one program, whose stores all have the same `components`.

    `count` says how often somebody judged, `twice` how often what a recovery had left was recovered again.
    `passed_over` begins to count the times at which nobody did: in a program alone hardly a twentieth one comes.
    """

    def __init__(self, components: Parts, passed_over: int = 0) -> None:
        self.count = 0
        self.twice = 0
        self._components = components
        self._survivors: dict[_Key, CommitLog] = {}
        self._recovered: dict[_Key, CommitLog] = {}
        self._passed_over = {"judged": passed_over, "recovered again": passed_over}

    def judge(self, directory: str, left: Snapshot, legal: LegalLogs, *, settings: Settings, now_ms: int) -> None:
        """Judge a directory whose files are `left`, unless that is known to hold. Raises GuaranteeBroken."""

        def known_as(content: Snapshot) -> _Key:
            return digest_of(content), settings, now_ms

        recovering: dict[_Key, CommitLog] = {}

        def once_more(recovered: Snapshot, survivor: CommitLog) -> bool:
            key = known_as(recovered)
            if self._recovered.get(key) == survivor and self._passes_over("recovered again"):
                return False
            self.twice += 1
            recovering[key] = survivor
            return True

        key = known_as(left)
        survivor = self._survivors.get(key)
        if survivor is not None and legal.get(survivor.end_offset) == survivor and self._passes_over("judged"):
            return
        self.count += 1
        found = judge_directory(
            directory, legal, settings=settings, components=self._components, now_ms=now_ms, once_more=once_more
        )
        require(found.ruling)
        if found.log is not None:
            self._survivors[key] = found.log
        self._recovered.update(recovering)  # it held

    def _passes_over(self, what: str) -> bool:
        """Whether something known is passed over: but for each twentieth time."""
        self._passed_over[what] += 1
        return self._passed_over[what] % AGAIN_EVERY != 0
