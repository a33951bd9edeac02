"""Remember which directories of a run were judged and held, and do not judge them again.

The verdict of the judges is a function of content, settings, time and the log that survived. Two kills often leave the
same directory, and even more often their recoveries do. Such a directory is neither judged nor recovered again, except
every twentieth time.
"""

from tornpage.impl.parts import Parts
from tornpage.model.state import CommitLog
from tornpage.properties.explore.kills.judge import LegalLogs, judge_directory
from tornpage.properties.explore.kills.snapshot import Snapshot, digest_of
from tornpage.properties.judge.rulings import require
from tornpage.properties.program.case import Settings

__all__ = ["AGAIN_EVERY", "Judged"]

AGAIN_EVERY = 20
"""Known directories are judged, or recovered again, once in this many times."""

_Key = tuple[bytes, Settings, int]


class Judged:
    """Remember the cycles of one program, whose stores all have the same `components`.

    `count` is the number of judgements, `twice` the number of second recoveries. `passed_over` is the initial count of
    skipped ones. Starting at 0 in every program would reach a twentieth one rarely.
    """

    def __init__(self, components: Parts, passed_over: int = 0) -> None:
        self.count = 0
        self.twice = 0
        self._components = components
        self._survivors: dict[_Key, CommitLog] = {}
        self._recovered: dict[_Key, CommitLog] = {}
        self._passed_over = {"judged": passed_over, "recovered again": passed_over}

    def judge(self, directory: str, left: Snapshot, legal: LegalLogs, *, settings: Settings, now_ms: int) -> None:
        """Judge a directory with the files `left`, unless it is known to hold.

        Raises GuaranteeBroken.
        """

        def key_of_content(content: Snapshot) -> _Key:
            return digest_of(content), settings, now_ms

        recovering: dict[_Key, CommitLog] = {}

        def once_more(recovered: Snapshot, survivor: CommitLog) -> bool:
            key = key_of_content(recovered)
            if self._recovered.get(key) == survivor and self._passes_over("recovered again"):
                return False
            self.twice += 1
            recovering[key] = survivor
            return True

        key = key_of_content(left)
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
        self._recovered.update(recovering)  # the judgement held

    def _passes_over(self, what: str) -> bool:
        """Return whether to skip something known, which is true except every twentieth time."""
        self._passed_over[what] += 1
        return self._passed_over[what] % AGAIN_EVERY != 0
