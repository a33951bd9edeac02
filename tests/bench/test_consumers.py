"""Compare the simulator of consumers with the library in virtual time, on small groups."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from tornpage.bench.consumers.validation import GROUPS, Group, compared, validate_groups
from tornpage.bench.consumers.virtual import UnsupportedGroup, consume
from tornpage.cli.simulating.sim import command
from tornpage.sim.consumers.group import run_group
from tornpage.sim.consumers.scenario import NS_PER_MS, Member, draw_load, rounded

S = 1_000 * NS_PER_MS
STEADY, CHANGING, CRASH = GROUPS
SMALL = (
    replace(
        CHANGING,
        scenario=replace(
            CHANGING.scenario,
            duration_ns=12 * S,
            members=(Member("a", 4, leaves_ns=8 * S), Member("b", 4), Member("c", 4, joins_ns=4 * S)),
        ),
    ),
    replace(
        CRASH,
        seeds=1,
        scenario=replace(
            CRASH.scenario,
            duration_ns=16 * S,
            noticed_ns=2 * S,
            members=(Member("a"), Member("b"), Member("c", crashes_ns=8 * S)),
        ),
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("group", SMALL, ids=lambda group: group.name)
def test_simulator_and_library_agree(group: Group) -> None:
    rows = {row.figure: row for row in validate_groups(1, lambda step: None, (group,))}
    assert all(row.is_close for row in rows.values()), rows
    assert rows["listener_runs"].measured > 900
    assert (rows["repeated_messages"].measured > 0) == (group.name == "crash")


def test_another_group_is_not_close() -> None:
    """The comparison fails for a simulation of other threads."""
    scenario = replace(STEADY.scenario, duration_ns=5 * S, members=(Member("a", 3), Member("b", 3)))
    load = rounded(draw_load(scenario, 1), NS_PER_MS)
    other = replace(scenario, members=(Member("a", 1), Member("b", 1)))
    rows = {row.figure: row for row in compared("x", [(run_group(other, 1, load=load), consume(scenario, load))])}
    assert not rows["mean_lag"].is_close


def test_what_the_library_does_not_do_is_refused() -> None:
    scenario = replace(STEADY.scenario, duration_ns=S)
    load = rounded(draw_load(scenario, 1), NS_PER_MS)
    with pytest.raises(UnsupportedGroup, match="hands queues over"):
        consume(replace(scenario, hands_over=False), load)
    with pytest.raises(UnsupportedGroup, match="whole milliseconds"):
        consume(scenario, draw_load(scenario, 1))


@pytest.mark.deep
def test_the_command_compares_three_groups() -> None:
    done = CliRunner().invoke(command, ["consumers", "--json"])
    document = json.loads(done.stdout)
    assert (done.exit_code, document["verdict"], document["figures"]["groups"]) == (0, "holds", 3)
    assert document["figures"]["repeated_messages"] > 100
