"""Replay a failure of a mutant on the original store."""

from tornpage.properties.mutation.trials import MutantRow

__all__ = ["original_keeps"]


def original_keeps(row: MutantRow) -> bool:
    """Return whether the original keeps the promise that a row says is broken."""
    from tornpage.properties.campaign.replay import replay
    from tornpage.properties.cluster.replay import replay_cluster
    from tornpage.properties.consumers.replay import replay_group
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explore.interleavings.run import run_interleaving
    from tornpage.properties.explore.interleavings.token import from_token
    from tornpage.properties.program.case import Case
    from tornpage.properties.program.cluster_case import ClusterCase
    from tornpage.properties.program.group_case import GroupCase
    from tornpage.properties.program.raft_case import RaftCase
    from tornpage.properties.raft.replay import replay_raft

    token = row.token
    with choose_tracker("auto") as tracker:
        match row.strategy:
            case "cluster":
                return replay_cluster(ClusterCase.from_token(token), tracker=tracker) is None
            case "consumers":
                return replay_group(GroupCase.from_token(token), tracker=tracker) is None
            case "raft":
                return replay_raft(RaftCase.from_token(token), tracker=tracker) is None
            case "interleavings":
                return run_interleaving(from_token(token)[0], tracker=tracker).broken is None
        return replay(Case.from_token(token), tracker=tracker) is None
