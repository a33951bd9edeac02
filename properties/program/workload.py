"""The standard workload of a campaign: random operations of clients and services.

It has three log files of 16 KiB, 40 records or more, and three queues (docs/contract.md, "Campaigns"). A table of rules
lists the operations. The configuration of a run (explore/crashes/scheduling.py) says how often each is drawn;
the standard one is the table's weights.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from tornpage.model.operations import (
    CancelPull,
    Close,
    FailAppend,
    FailSync,
    FailWrite,
    Flush,
    Open,
    Operation,
    RefuseFile,
    ReleaseBuffer,
    ServiceName,
    Step,
)
from tornpage.properties.program.case import Settings
from tornpage.properties.program.drawing import (
    Words,
    draw_batch,
    draw_change_table,
    draw_clean_for_room,
    draw_clean_on_request,
    draw_commit_offset,
    draw_delete_topics,
    draw_get,
    draw_get_message,
    draw_hold_buffer,
    draw_offset_by_time,
    draw_pull_held,
    draw_put,
    draw_query_key,
    draw_query_offsets,
    draw_replica,
    draw_switch_flag,
    draw_try_functions,
    draw_try_settings,
)

__all__ = [
    "RULES",
    "TABLE",
    "UNDELETED",
    "WEIGHTS",
    "WEIGHTS_IN_ROWS",
    "Rule",
    "draw_operation",
    "draw_rule",
    "draw_settings",
    "mode_of",
    "possible",
]


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of operation: its name, its weight, and its draw.

    Activation tables use the name after `rule_`.

    The weight is its share in the standard configuration, in thousandths. A rule with weight 0 is drawn by rows of
    covering arrays only, with the share `in_rows`. A rule that `needs` a service is not drawn for a store without it.
    """

    name: str
    weight: int
    draw: Callable[[random.Random, Words], Operation]
    needs: ServiceName | None = None
    in_rows: int = 0


def _drawn(draw: Callable[[random.Random], Operation]) -> Callable[[random.Random, Words], Operation]:
    return lambda rng, words: draw(rng)


def _always(operation: Operation) -> Callable[[random.Random, Words], Operation]:
    return lambda rng, words: operation


def _draw_step(rng: random.Random, words: Words) -> Operation:
    return Step(service=rng.choice(words.services), after_ms=rng.choice(words.pauses_ms))


def _draw_delivery(rng: random.Random, words: Words) -> Operation:
    return Step(service="schedule", after_ms=rng.choice((1_000, 3_000, 3_000)))


TABLE: tuple[tuple[Rule, ...], ...] = (
    (
        Rule("clean_for_room", 6, _drawn(draw_clean_for_room)),
        Rule("clean_on_request", 4, _drawn(draw_clean_on_request)),
        Rule("delete_topics", 5, draw_delete_topics),
        Rule("hold_buffer", 3, _drawn(draw_hold_buffer)),
        Rule("release_buffer", 2, _always(ReleaseBuffer())),
    ),
    (Rule("flush", 30, _always(Flush())),),
    (Rule("get", 40, _drawn(draw_get)),),
    (
        Rule("get_message", 15, draw_get_message),
        Rule("query_key", 9, _drawn(draw_query_key)),
        Rule("offset_by_time", 6, _drawn(draw_offset_by_time)),
    ),
    (Rule("close", 5, _always(Close())),),
    (Rule("fail_sync", 5, _always(FailSync())),),
    (Rule("fail_write", 5, _always(FailWrite())),),
    (Rule("refuse_file", 5, _always(RefuseFile())),),
    (Rule("dispatch", 50, _always(Step(service="reput")), needs="reput"),),
    (Rule("step", 80, _draw_step),),
    (Rule("deliver", 20, _draw_delivery, needs="schedule"),),
    (
        Rule("save_progress", 9, _always(Step(service="progress", after_ms=5_000))),
        Rule("commit_offset", 18, _drawn(draw_commit_offset)),
        Rule("query_offsets", 3, _drawn(draw_query_offsets)),
    ),
    (
        Rule("pull_held", 0, draw_pull_held, in_rows=12),
        Rule("cancel_pull", 0, _always(CancelPull()), in_rows=3),
        Rule("switch_flag", 0, _drawn(draw_switch_flag), in_rows=6),
        Rule("replica_is", 0, _drawn(draw_replica), in_rows=6),
        Rule("change_table", 0, draw_change_table, in_rows=12),
        Rule("try_settings", 0, _drawn(draw_try_settings), in_rows=2),
        Rule("try_functions", 0, _drawn(draw_try_functions), in_rows=2),
        Rule("fail_append", 0, _always(FailAppend()), in_rows=4),
    ),
    (Rule("put_batch", 50, draw_batch),),
    (Rule("put", 630, draw_put),),
)
"""Rules in groups; a group is drawn first. A group that a store cannot draw leaves its share to the next one."""

RULES: Mapping[str, Rule] = {rule.name: rule for group in TABLE for rule in group}
WEIGHTS: Mapping[str, int] = {rule.name: rule.weight for rule in RULES.values()}
WEIGHTS_IN_ROWS: Mapping[str, int] = {rule.name: rule.weight or rule.in_rows for rule in RULES.values()}
"""The weights of rules that a row of a covering array has on."""
_DELETIONS = frozenset(rule.name for rule in TABLE[0])

UNDELETED: Mapping[str, int] = {name: 0 if name in _DELETIONS else weight for name, weight in WEIGHTS.items()} | {
    "flush": WEIGHTS["flush"] + sum(WEIGHTS[name] for name in _DELETIONS)
}
"""The standard weights for runs without deletions."""


def draw_settings(base: Settings, rng: random.Random) -> Settings:
    """Vary the settings that a campaign may vary.

    They are durability mode, pending copies, files ahead, directories, checksums and queues.
    """
    mode = rng.random()
    return replace(
        base,
        sync_flush=mode < 0.4,
        pool_buffers=2 if mode >= 0.85 else 1 if mode >= 0.7 else 0,
        fast_fail=mode >= 0.9,
        files_ahead=rng.choice((0, 1, 1)),
        least_pages=rng.choice((4, 1)),
        trailer=rng.random() < 0.8,
        multi_dispatch=(dispatches := rng.random() < 0.3),
        light_queues=dispatches,
        log_paths=rng.choice((1, 1, 2)),
        queue_units=rng.choice((16, 4, 8)),
        queue_ext=(extended := rng.random()) < 0.15,
        bit_maps=extended < 0.1,
        index=rng.random() < 0.9,
        index_slots=rng.choice((3, 1, 10)),
        index_entries=rng.choice((24, 10, 64)),
        pending_copies=2 if mode < 0.3 else 3 if 0.4 <= mode < 0.5 else 0,
    )


def mode_of(settings: Settings) -> str:
    """Return the durability mode of a store, as in activation tables."""
    if settings.sync_flush:
        return "mode_sync"
    return "mode_pool" if settings.pool_buffers else "mode_async"


def draw_operation(
    rng: random.Random,
    *,
    closed: bool,
    services: Sequence[ServiceName] = ("group-commit",),
    weights: Mapping[str, int] = UNDELETED,
) -> Operation:
    """Draw the next operation of a store with these services, open or closed."""
    return Open() if closed else draw_rule(rng, services=services, weights=weights).draw(rng, Words(services=services))


def draw_rule(rng: random.Random, *, services: Sequence[ServiceName], weights: Mapping[str, int]) -> Rule:
    """Draw a rule by weight.

    At least one rule has a weight and needs no service.
    """
    drawn, below = rng.random() * sum(weights.values()), 0
    chosen: tuple[Rule, ...] = ()
    for group in TABLE:
        below += sum(weights[rule.name] for rule in group)
        if possible(group, services=services, weights=weights):
            chosen = group
            if drawn < below:
                break
    rules = possible(chosen, services=services, weights=weights)
    if len(chosen) == 1:
        return rules[0]
    drawn = rng.random() * sum(weights[rule.name] for rule in rules)
    ends = accumulate(weights[rule.name] for rule in rules)
    return next(rule for rule, end in zip(rules, ends, strict=True) if drawn < end)


def possible(rules: Iterable[Rule], *, services: Sequence[ServiceName], weights: Mapping[str, int]) -> list[Rule]:
    """Return the rules that have a weight and whose service exists."""
    return [rule for rule in rules if weights[rule.name] and (rule.needs is None or rule.needs in services)]
