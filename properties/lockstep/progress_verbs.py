"""The verbs of consumer progress, compared with the model as they return.

What the file of it says is looked at after each disaster (properties/judge/progress_judges.py).
"""

from impl.errors import BadProgress
from model import progress
from model.operations import CommitOffset, QueryOffsets
from properties.contract import GuaranteeBroken, observed
from properties.lockstep.retention_verbs import RetentionVerbs

__all__ = ["ProgressVerbs"]


class ProgressVerbs(RetentionVerbs):
    """Commits and queries of a trial."""

    def commit_offset(self, operation: CommitOffset) -> None:
        """Commit, and compare what counts (contract 17); where dispatch broke off no end of a queue is known."""
        if self.closed or self.is_partly_dispatched:
            return
        topic, queue_id = queue = self._queue(operation.queue)
        end = self._bounds(queue)[1]
        offset = max(0, end - operation.behind)
        if "@" in topic:
            self._commit_is_refused(operation.group, topic, queue_id, offset)
            return

        def end_of(name: str, each: int) -> int:
            return self._bounds((name, each))[1]

        self.consumers, expected = progress.commit(
            self.consumers, operation.group, topic, queue_id, offset, end_of=end_of, light=self.settings.light_queues
        )
        found = observed("commit_offset", lambda: self.store.commit_offset(operation.group, topic, queue_id, offset))
        if found != expected:
            raise GuaranteeBroken(17, "another offset counts than was committed", str(expected), str(found))
        self.happened("committed_offsets")
        self.happened("committed_beyond_the_end", offset > end)

    def _commit_is_refused(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """A name that the file would take apart in another place is no name (contract 8)."""
        try:
            self.store.commit_offset(group, topic, queue_id, offset)
        except BadProgress:
            self.happened("commit_refused")
            return
        raise GuaranteeBroken(8, f"an offset of {topic} is committed", "BadProgress", "an answer")

    def query_offsets(self, operation: QueryOffsets) -> None:
        """Ask for everything that is known of a group, and compare."""
        if self.closed or self.is_partly_dispatched:
            return
        group, (topic, queue_id) = operation.group, self._queue(operation.queue)
        begin = self._bounds((topic, queue_id))[0]
        ends = [(each, self._bounds((name, each))[1]) for name, each in self.derived.queues if name == topic]
        light = self.settings.light_queues
        next_offset = progress.query(self.consumers, group, topic, queue_id, begin=begin, light=light)

        def begin_of(name: str, each: int) -> int:
            return self._bounds((name, each))[0]

        for what, expected, found in (
            ("the least offset of all groups", progress.least_offsets(self.consumers, topic, begin_of=begin_of),
                observed("query_min_offset_in_all_group", lambda: self.store.query_min_offset_in_all_group(topic))),
            ("the least offset of other groups",
                progress.least_offsets(self.consumers, topic, begin_of=begin_of, without=(group,)),
                observed("query_min_offset_in_all_group",
                         lambda: self.store.query_min_offset_in_all_group(topic, without=(group,)))),
            ("where a group goes on", next_offset, observed(
                "query_offset", lambda: self.store.query_offset(group, topic, queue_id))),
            ("how far a group is behind", progress.diff_total(self.consumers, group, topic, ends=ends), observed(
                "diff_total", lambda: self.store.diff_total(group, topic))),
        ):  # fmt: skip
            if found != expected:
                raise GuaranteeBroken(17, f"the store is wrong about {what}", str(expected), str(found))
        self.happened("queried_known_offset", bool(next_offset))
        self.happened("queried_unknown_offset", next_offset is None)
