"""Compare the simulator of Raft groups with the members of `impl/raft`, on small groups."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from tornpage.bench.raft import validation
from tornpage.bench.raft.real_member import RealMember, UnsupportedPolicy
from tornpage.bench.raft.validation import RAFT_GROUPS, validate_raft
from tornpage.cli.simulating.sim import command
from tornpage.sim.raft.group import run_raft
from tornpage.sim.raft.scenario import NS_PER_MS, RaftScenario

S = 1_000 * NS_PER_MS
LOADED, _, CLOSED, _, LOSSY, NARROW = RAFT_GROUPS
SMALL = tuple(
    replace(group, scenario=replace(group.scenario, duration_ns=round(seconds * S)))
    for group, seconds in ((LOADED, 0.3), (CLOSED, 0.1), (LOSSY, 12), (NARROW, 24))
)


@pytest.mark.parametrize("group", SMALL, ids=lambda group: group.name)
def test_the_simulator_decides_as_the_members_do(group: validation.RaftGroup) -> None:
    simulated, real = run_raft(group.scenario, 3), run_raft(group.scenario, 3, kind=RealMember)
    assert len(real.answered_ns) > 50
    assert np.array_equal(simulated.answered_ns, real.answered_ns)
    assert simulated.failovers == real.failovers
    assert simulated.unavailable_ns == real.unavailable_ns
    assert simulated.retransmits == real.retransmits


def test_false_elections_are_those_of_the_members() -> None:
    scenario = replace(
        LOSSY.scenario, duration_ns=6 * S, kill_after_ns=None, heartbeat_ns=25 * NS_PER_MS,
        election_min_ns=100 * NS_PER_MS, election_max_ns=200 * NS_PER_MS,
    )  # fmt: skip
    simulated, real = run_raft(scenario, 3), run_raft(scenario, 3, kind=RealMember)
    assert np.array_equal(simulated.answered_ns, real.answered_ns)
    assert real.false_elections > 0
    assert real.unavailable_ns > 0
    assert (simulated.false_elections, simulated.unavailable_ns) == (real.false_elections, real.unavailable_ns)


def test_a_group_with_other_rules_is_not_close() -> None:
    class Late(RealMember):
        """A member that waits twice as long for a leader."""

        def __init__(self, env, scenario, me, seed, world) -> None:  # type: ignore[no-untyped-def]
            longer = {"election_min_ns": 2 * scenario.election_min_ns, "election_max_ns": 2 * scenario.election_max_ns}
            super().__init__(env, replace(scenario, **longer), me, seed, world)

    patched = pytest.MonkeyPatch()
    with patched.context() as patch:
        patch.setattr(validation, "RealMember", Late)
        rows = list(validate_raft(3, lambda name: None, (SMALL[3],)))
    assert not {row.figure: row for row in rows}["failover_mean_ms"].is_close


def test_the_policy_of_dledger_has_no_member_to_compare_with() -> None:
    scenario: RaftScenario = replace(LOADED.scenario, acknowledge="received")
    with pytest.raises(UnsupportedPolicy, match="durable entries only"):
        run_raft(scenario, 1, kind=RealMember)


def test_the_command_reports_each_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation.validate_raft, "__defaults__", ((SMALL[0], SMALL[3]),))
    found = CliRunner().invoke(command, ["raft", "--seed", "3", "--json"])
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["verdict"] == "holds"
    assert document["figures"]["worst_error"] == 0
    assert {row["group"] for row in document["rows"]} == {SMALL[0].name, SMALL[3].name}
    assert document["figures"]["failed_elections"] > 0


def test_groups_without_a_failed_election_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation.validate_raft, "__defaults__", (SMALL[:1],))
    found = CliRunner().invoke(command, ["raft", "--json"])
    assert json.loads(found.stdout)["verdict"] == "vacuous"
    assert found.exit_code == 3
