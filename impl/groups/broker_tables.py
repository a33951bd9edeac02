"""The broker tables: topics, consumer groups and filters. Source: `AdminBrokerProcessor`.

A change to a topic or a group is on disk when its method returns. It raises OSError if the write fails, and changes
nothing then. The service saves filters. Each method raises StoreClosed after `close()`, ForkedStore in a forked child,
and ReadOnlyStore in a read-only store.
"""

from tornpage.impl.errors import BadProgress, ReadOnlyStore
from tornpage.impl.groups.broker_configs import ConsumerFilterData, SubscriptionGroupConfig, TopicConfig
from tornpage.impl.groups.consumer_offsets import SEPARATOR
from tornpage.impl.groups.progress import Progress
from tornpage.impl.service.lifecycle import Lifecycle

__all__ = ["BrokerTables"]


class BrokerTables:
    """The tables of one store."""

    def __init__(self, progress: Progress, lifecycle: Lifecycle) -> None:
        self._progress = progress
        self._lifecycle = lifecycle

    def put_topic_config(self, topic: TopicConfig) -> None:
        """Set the configuration of a topic. Raises BadProgress if no state file can hold the name."""
        self._change("topic", topic.topic_name)
        self._progress.topics.put(topic.topic_name, topic)

    def delete_topic_config(self, topic: str) -> bool:
        """Remove a topic from the table; return whether it was there.

        `clean_unused_topics` deletes its queues.
        """
        self._change("topic", topic)
        return self._progress.topics.delete(topic)

    def topic_configs(self) -> dict[str, TopicConfig]:
        """Return the configuration of every topic by name."""
        self._lifecycle.require_open()
        return self._progress.topics.all()

    def put_subscription_group(self, group: SubscriptionGroupConfig) -> None:
        """Set the configuration of a consumer group.

        Raises BadProgress if no state file can hold the name.
        """
        self._change("group", group.group_name)
        self._progress.groups.put(group.group_name, group)

    def delete_subscription_group(self, group: str) -> bool:
        """Remove a consumer group from the table; return whether it was there."""
        self._change("group", group)
        return self._progress.groups.delete(group)

    def subscription_groups(self) -> dict[str, SubscriptionGroupConfig]:
        """Return the configuration of every consumer group by name."""
        self._lifecycle.require_open()
        return self._progress.groups.all()

    def put_consumer_filter(self, consumer_filter: ConsumerFilterData) -> None:
        """Set the filter of a group in a topic."""
        self._change("group", consumer_filter.consumer_group)
        self._progress.filters.put((consumer_filter.topic, consumer_filter.consumer_group), consumer_filter)

    def consumer_filters(self) -> dict[tuple[str, str], ConsumerFilterData]:
        """Return every filter by topic and group."""
        self._lifecycle.require_open()
        return self._progress.filters.all()

    def _change(self, what: str, name: str) -> None:
        self._lifecycle.require_open()
        if self._lifecycle.shut:
            raise ReadOnlyStore(self._lifecycle.directory, str(self._lifecycle.read_only_reason))
        if not name or SEPARATOR in name:
            raise BadProgress(what, name, f"use a name without {SEPARATOR!r}")
