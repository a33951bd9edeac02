"""Compare the broker tables with the model (contract 13).

Judges compare the files of the tables after each crash fault (properties/judge/progress.py).
"""

from functools import partial
from typing import Any

from tornpage.impl.groups.broker_configs import SubscriptionGroupConfig, TopicConfig
from tornpage.model.answers import Answer, matches
from tornpage.model.broker.tables import Tables, table_of
from tornpage.model.operations import ChangeTable, TableName
from tornpage.model.step import applies
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.judge.evidence import Recovered
from tornpage.properties.judge.ledgers import BROKER_TABLES, entry_fields
from tornpage.properties.lockstep.compare import broken, predicted
from tornpage.properties.lockstep.pair import Pair

__all__ = ["change_table", "tables_are_right", "tables_in"]


def change_table(pair: Pair, operation: ChangeTable) -> None:
    """Change an entry, and compare the answer and both tables."""
    first, before = len(pair.files.events), pair.begin(operation)
    if not applies(before, operation, pair.layout):
        return
    after, expected = predicted(pair, before, operation)
    found = Answer(removed=_changed(pair, operation))
    if not matches(expected, found):
        raise broken(pair, operation, expected, found)
    pair.end_operation(first, after)
    tables_are_right(pair)
    pair.cover(f"changed_{operation.table}", operation.number >= 0)
    pair.cover("removed_entry", bool(found.removed))


def _changed(pair: Pair, operation: ChangeTable) -> bool | None:
    """Set or remove the entry in the store; return the answer to a removal."""
    store, name = pair.store, operation.name
    if operation.number < 0:
        remove = store.delete_topic_config if operation.table == "topics" else store.delete_subscription_group
        return observed("remove", partial(remove, name))
    entry = _config_of(operation.table, name, operation.number)
    if isinstance(entry, TopicConfig):
        observed("put_topic_config", partial(store.put_topic_config, entry))
    else:
        observed("put_subscription_group", partial(store.put_subscription_group, entry))
    return None


def _config_of(table: TableName, name: str, number: int) -> TopicConfig | SubscriptionGroupConfig:
    """Return the store's entry that a number stands for."""
    fields: dict[str, Any] = {_snake(each): value for each, value in entry_fields(table, name, number).items()}
    return TopicConfig(**fields) if table == "topics" else SubscriptionGroupConfig(**fields)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def tables_are_right(pair: Pair) -> None:
    """Contract 13: the tables in memory are those of the model."""
    for path, table in BROKER_TABLES.items():
        entries = table_of(pair.model.tables, table)
        expected = {name: _config_of(table, name, number) for name, number in entries}
        ask = pair.store.topic_configs if table == "topics" else pair.store.subscription_groups
        found = observed("the broker table", ask)
        if found != expected:
            sentence = f"the table of {table} is not that of {path.rpartition('/')[2]}"
            raise GuaranteeBroken(13, sentence, str(expected), str(found))


def tables_in(found: Recovered) -> Tables:
    """Return the broker tables that a recovered store found on its disk."""
    entries = []
    for path, table in BROKER_TABLES.items():
        version = found.versions_before.get(path, ())
        assert isinstance(version, tuple)
        entries += [((table, name), number) for name, number in version]
    return tuple(sorted(entries))
