"""Specify the broker tables of topics and consumer groups (contract 13).

1. A change is durable when its answer has come. After a crash inside a change the table is the old one or the new one.
2. Removing an entry that is not in the table writes nothing.

An entry is a number, which stands for all its fields.

Source: `TopicConfigManager`, `SubscriptionGroupManager`.
"""

from tornpage.model.operations import TableName

__all__ = ["Tables", "table_of", "with_entry"]

Tables = tuple[tuple[tuple[TableName, str], int], ...]
"""The entries of both tables: the table and the name of each, with its number, ascending."""


def with_entry(tables: Tables, table: TableName, name: str, number: int) -> Tables:
    """Return the tables with an entry set, or without it for a negative number."""
    left = {key: value for key, value in tables if key != (table, name)}
    return tuple(sorted({**left, **({} if number < 0 else {(table, name): number})}.items()))


def table_of(tables: Tables, table: TableName) -> tuple[tuple[str, int], ...]:
    """Return the names and numbers of one table, ascending."""
    return tuple((name, number) for (where, name), number in tables if where == table)
