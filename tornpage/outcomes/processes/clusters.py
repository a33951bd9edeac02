"""What `explore cluster` runs, and the page of a case of a cluster."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from tornpage import __version__
from tornpage.cli.document import Outcome, refuse, say
from tornpage.cli.progress import shrinking_progress, states_progress
from tornpage.outcomes.processes.campaigns import ProcessCampaign
from tornpage.outcomes.processes.cases import CLUSTER, HOLDS, process_case_of, readable_case
from tornpage.run.writing import new_page, write_whole

if TYPE_CHECKING:
    from tornpage.outcomes.counterexamples import GivenCase
    from tornpage.outcomes.exploring import Request
    from tornpage.properties.explore.cluster.campaign import ClusterPlan

__all__ = ["cluster_page_of", "explain_cluster_case", "explore_cluster"]

_CAMPAIGN = ProcessCampaign(
    verb="cluster",
    kind=CLUSTER,
    size="nodes",
    effects=(
        "log cut", "log files deleted", "writes lost", "bytes lost by a reset", "bit flipped", "no common generation",
        "bytes gone",
    ),
    rate="states",
)  # fmt: skip


def explore_cluster(request: Request) -> tuple[Outcome, str]:
    """Run a campaign on clusters; return its outcome and its text."""
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explore.cluster.campaign import ClusterPlan
    from tornpage.properties.explore.cluster.campaign import explore_cluster as explore
    from tornpage.properties.program.cluster_case import ClusterSettings

    settings = ClusterSettings(nodes=request.nodes, disk=request.disk, bug=request.bug)
    limit_s = request.seconds if request.length else request.time_limit_s
    plan = ClusterPlan(settings, request.seed, request.states, limit_s, request.workers or 1, request.length)
    again = _CAMPAIGN.command(plan)
    say(again)
    total, unit = request.progress_total
    with choose_tracker("auto") as tracker, states_progress("exploring", total=total, unit=unit) as show:
        result = explore(plan, tracker=tracker, progress=show)
    statement = _statement(plan) if plan.length else ""
    return _CAMPAIGN.outcome(result, plan, out=request.out, command=again, statement=statement)


def _statement(plan: ClusterPlan) -> str:
    """Return the bound of a campaign of all programs."""
    from tornpage.properties.explore.cluster.programs import ALPHABET, WITH_FILES

    return (
        f"all programs of up to {plan.length} of {len(ALPHABET)} operations that do something, after a first round, "
        f"and of up to {plan.length - 1} of {len(ALPHABET) + len(WITH_FILES)} on a log of two files, each with a "
        "healed network at its end; power losses keep nothing or everything"
    )


# ---- a page and a test -----------------------------------------------------------------------------------------------


def explain_cluster_case(given: GivenCase, *, seconds: float, page: str) -> tuple[Outcome, str]:
    """Write the page of a case of a cluster, after shrinking for `seconds`. Raises UnknownBug."""
    from tornpage.properties.cluster.replay import CLUSTERS
    from tornpage.properties.cluster.timeline import account_of
    from tornpage.properties.disk.dirty import choose_tracker

    case, how = readable_case(CLUSTER, given), None
    operations_before, started = len(case.operations), perf_counter()
    with choose_tracker("auto") as tracker:
        if seconds and (failure := CLUSTERS.replay(case, tracker=tracker)) is not None:
            tries = [0]

            def watch(tried: int, operations: int, losses: int) -> None:
                show(tried, operations, losses)
                tries[0] = tried

            with shrinking_progress(seconds=seconds) as show:
                case = CLUSTERS.shrink(
                    failure, tracker=tracker, is_over=lambda: perf_counter() - started > seconds, watch=watch
                ).case
            ended = "time" if perf_counter() - started > seconds else ""
            how = {"one_minimal": False, "ended": ended, "tries": tries[0], "history": []}
            how["operations_before"] = operations_before
        found = account_of(case, tracker=tracker)
    if found is None:
        return Outcome("explain", "holds", {"operations": len(case.operations)}), HOLDS.format("explain")
    failure, account = found
    text = _page(account.document(), how)
    path = new_page(page or f"counterexample-{failure.case.token()[4:12]}.html", option="--out", overwrite=False)
    try:
        write_whole(path, text)
    except OSError as error:
        refuse(f"cannot write the page to {path}: {error.strerror}; name another --out file")
    figures = {
        "operations": len(failure.case.operations),
        "losses": failure.lost_writes,
        "page_bytes": len(text.encode()),
    }
    findings = [failure.finding().document() | {"page": str(path)}]
    sentence = f"contract {failure.broken.contract} is broken: {failure.broken.sentence}"
    return Outcome("explain", "broken", figures, (), findings), f"{sentence}\n{path}\n\nverdict: broken"


def _page(account: dict[str, Any], how: dict[str, Any] | None) -> str:
    from tornpage.reports.pages.cluster_page import read_cluster_example, render_cluster_example

    return render_cluster_example(read_cluster_example({**account, "version": __version__, "shrinking": how}))


def cluster_page_of(given: GivenCase) -> str | None:
    """Return the page of a case, None if every guarantee holds.

    Raises BadToken and UnknownBug.
    """
    from tornpage.properties.cluster.timeline import account_of
    from tornpage.properties.disk.dirty import choose_tracker

    with choose_tracker("auto") as tracker:
        found = account_of(process_case_of(CLUSTER, given), tracker=tracker)
    return None if found is None else _page(found[1].document(), None)
