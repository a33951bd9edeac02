"""Write the bounds statement: what a run has shown, in one sentence."""

from tornpage.properties.explore.exhaustive.run import ExhaustTally
from tornpage.properties.judge.rulings import counted

__all__ = ["figures_of", "statement_of"]


def figures_of(tally: ExhaustTally) -> dict[str, int]:
    """Return the numbers of the claimed part, which are the finished lengths of workloads."""
    claimed = tally.claimed
    states = sum(each.states for each in claimed)
    judged = sum(each.judged for each in claimed)
    return {
        "ops": tally.ops,
        "facts": tally.plan.facts,
        "letters": len(tally.plan.operation_set),
        "workloads": len(claimed),
        "states": states,
        **{f"{kind}_states": sum(each.kinds[kind] for each in claimed) for kind in ("power", "kill", "recovery")},
        "images": len(frozenset[str]().union(*(each.images for each in claimed))),
        "recovered_states": len(frozenset[str]().union(*(each.recovered for each in claimed))),
        "judged": judged,
        "recovered_again": sum(each.recovered_again for each in claimed),
        "pruned": states - judged,
        "certified": sum(each.certified for each in claimed),
        "check_ops": tally.checked_ops,
        "check_facts": tally.plan.check_bound.facts,
        "check_states": sum(each.states for each in tally.checked) if tally.checked_ops >= 0 else 0,
        "unclaimed_workloads": len(tally.explored) - len(claimed),
    }


def statement_of(tally: ExhaustTally) -> str:
    """Return the statement for the largest finished bound, and say if the run is unfinished."""
    plan, numbers = tally.plan, figures_of(tally)
    if tally.ops < 0:
        return "exhaustive up to nothing: not even the open of a new store was finished"
    bound = "the open of a new store" if not tally.ops else f"up to {counted(tally.ops, 'operation')}"
    recovery = f", recovery crashed within {plan.recovery_facts}" if plan.recovery_facts >= 0 else ""
    share = numbers["pruned"] / max(numbers["states"], 1)
    said = (
        f"exhaustive {bound} with the operations {{{', '.join(entry.name for entry in plan.operation_set)}}}, "
        f"{counted(plan.facts, 'in-flight write')}{recovery}, disk {plan.disk}, mode {plan.mode}, "
        f"log files of {plan.file_bytes} bytes: {counted(numbers['workloads'], 'workload')}, "
        f"{counted(numbers['states'], 'crash state')}, {counted(numbers['images'], 'image')}, "
        f"{counted(numbers['recovered_states'], 'recovered state')}, {numbers['pruned']:,} pruned ({share:.0%}); "
        f"{_check(tally, numbers)}"
    )
    if tally.ops < plan.ops:
        said += f"; the bound of {counted(plan.ops, 'operation')} was not finished and is not claimed"
    return said


def _check(tally: ExhaustTally, numbers: dict[str, int]) -> str:
    if tally.checked_ops < 0:
        return "not checked by brute force"
    bound = f"{counted(tally.checked_ops, 'operation')}, {counted(numbers['check_facts'], 'in-flight write')}"
    return f"brute-force check at ({bound}), {counted(numbers['check_states'], 'state')}: equal"
