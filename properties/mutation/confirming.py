"""Replay a failure of a mutant on the original store."""

from tornpage.properties.mutation.trials import MutantRow

__all__ = ["original_keeps"]


def original_keeps(row: MutantRow) -> bool:
    """Return whether the original keeps the promise that a row says is broken."""
    from tornpage.properties.campaign.replay import replay
    from tornpage.properties.cluster.replay import replay_cluster
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explore.interleavings.run import run_interleaving
    from tornpage.properties.explore.interleavings.token import from_token
    from tornpage.properties.program.case import Case
    from tornpage.properties.program.cluster_case import ClusterCase

    with choose_tracker("auto") as tracker:
        if row.strategy == "cluster":
            return replay_cluster(ClusterCase.from_token(row.token), tracker=tracker) is None
        if row.strategy == "interleavings":
            interleaving, _ = from_token(row.token)
            return run_interleaving(interleaving, tracker=tracker).broken is None
        return replay(Case.from_token(row.token), tracker=tracker) is None
