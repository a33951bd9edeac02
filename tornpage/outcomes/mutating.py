"""Run `tornpage bugs mutate`: trials of mutants, rates with intervals, and survivors."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tornpage.cli.document import Outcome, refuse
from tornpage.cli.progress import steps_progress
from tornpage.properties.campaign.resume import BadRows, ResumeWriteError
from tornpage.properties.judge.rulings import counted
from tornpage.properties.mutation.campaign import (
    REVIEWED,
    Judged,
    MutationPlan,
    NotMeasured,
    TrialsDone,
    judge_mutants,
    known_reach,
    measure,
    try_mutants,
)
from tornpage.properties.mutation.confirming import original_keeps
from tornpage.properties.mutation.mutants import LEFT_OUT, Mutant
from tornpage.properties.mutation.reach import reach_rows
from tornpage.properties.mutation.review import reason_of
from tornpage.properties.mutation.trials import KILLED, TRACED_STATES, mutant_rows
from tornpage.properties.mutation.unit_tests import UNIT_TESTS
from tornpage.reports.results.intervals import interval

__all__ = ["listed_outcome", "mutate_outcome"]

Row = dict[str, Any]

_BUDGETS_S = (5.0, 10.0, 20.0, 60.0)
_SURVIVED = ("difference not judged", "not compared", "not reached", "presumed equivalent")
_REASONS = {
    "difference not judged": "the changed statement runs, and crash states differ, but no judge objects",
    "not compared": "the changed statement runs in a search; its states were not compared, or do not run it",
    "not reached": "the changed statement never runs",
    "presumed equivalent": f"a proof, a review, or {TRACED_STATES:,} equal crash states and other runs say so",
}


def listed_outcome(mutants: Sequence[Mutant]) -> tuple[Outcome, str]:
    """Return all mutants as a document, and their numbers as text."""
    rows = [_named(mutant) for mutant in mutants]
    lines = [f"{mutant.id}  line {mutant.line}: {_change(mutant)}" for mutant in mutants]
    lines += ["", f"{counted(len(mutants), 'mutant')} by {len({m.operator for m in mutants})} operators"]
    lines += [f"{package} has none: {reason}" for package, reason in LEFT_OUT.items()]
    figures = {"mutants": len(mutants), **_by_name("operator", (mutant.operator for mutant in mutants))}
    return Outcome("bugs mutate", None, figures, extra={"rows": rows}), "\n".join(lines)


def mutate_outcome(
    plan: MutationPlan, *, reach_s: float, workers: int, directory: Path | None, command: str
) -> tuple[Outcome, str]:
    """Run missing trials; return outcome and text.

    Before, each strategy is measured for `reach_s` seconds of processor time. An interrupt keeps finished trials.
    """
    try:
        kept, reach = mutant_rows(directory), reach_rows(directory)
    except BadRows as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot read {error.filename}: {error.strerror}; name another --out directory")
    interrupted = False
    plan = known_reach(plan, reach.rows)
    try:
        with steps_progress("measuring", total=len(plan.strategies) + len(plan.traces), unit="strategies") as show:
            plan = measure(plan, budget_s=reach_s, workers=workers, kept=reach, progress=show)
        with steps_progress("mutating", total=len(plan.mutants), unit="mutants") as show:
            try_mutants(plan, workers=workers, kept=kept, progress=_shown(show), confirm=original_keeps)
    except (NotMeasured, ResumeWriteError) as error:
        refuse(str(error))
    except KeyboardInterrupt:
        interrupted = True
    judged = judge_mutants(plan, kept.rows)
    figures = _figures(plan, judged)
    rows = [_row(each) for each in judged]
    caption = {
        "source": f"{counted(len(plan.mutants), 'mutant')}, {plan.budget_s:g} s of processor time a strategy",
        "seed": plan.base_seed,
        "command": command,
    }
    rates = [*_rates("package", plan, judged), *_rates("operator", plan, judged)]
    outcome = Outcome(
        "bugs mutate",
        "holds" if figures["with_result"] else "vacuous",
        figures,
        [name for name in figures if name.startswith(("killed", "median", "rate", "presumed", "not_", "difference"))],
        _findings(judged),
        seed=plan.base_seed,
        extra={"rows": rows},
        interrupted=interrupted,
        tables={"mutants": {"rows": rows, "caption": caption}, "mutant_rates": {"rows": rates, "caption": caption}},
    )
    return outcome, _text(plan, judged, figures, rates, interrupted=interrupted)


def _shown(show: Callable[..., None]) -> Callable[[TrialsDone], None]:
    shown = 0

    def progress(done: TrialsDone) -> None:
        nonlocal shown
        while shown < done.done:
            shown += 1
            show(f"{done.killed} killed")

    return progress


# ---- figures ---------------------------------------------------------------------------------------------------------


def _ended(judged: Iterable[Judged]) -> list[Judged]:
    return [each for each in judged if each.verdict != "no result"]


def _figures(plan: MutationPlan, judged: Sequence[Judged]) -> dict[str, float | int]:
    ended = _ended(judged)
    killed = [each for each in ended if each.verdict == "killed"]
    figures: dict[str, float | int] = {
        "mutants": len(judged),
        "with_result": len(ended),
        "budget_s": plan.budget_s,
        "killed": len(killed),
        "without_a_strategy": sum(not plan.strategies_of(mutant) for mutant in plan.mutants),
        **{name.replace(" ", "_"): sum(each.verdict == name for each in ended) for name in _SURVIVED},
    }
    figures["equivalent_by_review"] = sum(each.reason.startswith(REVIEWED) for each in ended)
    figures["reviewed_but_killed"] = len(_wrongly_reviewed(judged))
    strict, lenient = len(ended), len(ended) - int(figures["presumed_equivalent"])
    for name, total in (("of_all", strict), ("of_not_equivalent", lenient)):
        low, high = interval(len(killed), total)
        figures |= {f"rate_{name}": len(killed) / max(total, 1), f"rate_{name}_low": low, f"rate_{name}_high": high}
    figures |= {f"killed_within_{budget:g}_s": _within(killed, budget) for budget in _BUDGETS_S}
    figures |= {f"killed_by_{end.replace(' ', '_')}": count for end, count in _counts(e.end for e in killed).items()}
    if killed:
        figures["median_kill_s"] = round(median(each.seconds for each in killed), 3)
    for name in (*plan.strategies, UNIT_TESTS):
        tried = [each for each in _compared(plan, judged, name) if name in each.by_strategy]
        if tried:
            figures[f"tried_{name.replace(' ', '_')}"] = len(tried)
            figures[f"killed_{name.replace(' ', '_')}"] = sum(each.by_strategy[name].end in KILLED for each in tried)
    return figures


def _compared(plan: MutationPlan, judged: Sequence[Judged], name: str) -> Sequence[Judged]:
    """Return the mutants on which a strategy is compared.

    Strategies are compared on those tried with all of them, the unit tests on all mutants.
    """
    return judged if name == UNIT_TESTS else judged[: plan.everywhere]


def _wrongly_reviewed(judged: Iterable[Judged]) -> list[Judged]:
    """Return the killed mutants that a review called equivalent."""
    return [each for each in judged if each.verdict == "killed" and reason_of(each.mutant)]


def _within(killed: Iterable[Judged], budget_s: float) -> int:
    return sum(each.seconds <= budget_s for each in killed)


def _counts(names: Iterable[str]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for name in names:
        counted[name] = counted.get(name, 0) + 1
    return dict(sorted(counted.items()))


def _by_name(what: str, names: Iterable[str]) -> dict[str, int]:
    return {f"{what}_{name.replace(' ', '_').replace('-', '_')}": count for name, count in _counts(names).items()}


def _rates(what: str, plan: MutationPlan, judged: Sequence[Judged]) -> list[Row]:
    """Return the kill rate of each package or operator, within several budgets."""
    rows = []
    for name in sorted({getattr(each.mutant, what) for each in judged}):
        of_name = [each for each in _ended(judged) if getattr(each.mutant, what) == name]
        killed = [each for each in of_name if each.verdict == "killed"]
        equivalent = sum(each.verdict == "presumed equivalent" for each in of_name)
        low, high = interval(len(killed), len(of_name) - equivalent)
        rows.append(
            {
                "by": what,
                "name": name,
                "mutants": len(of_name),
                "killed": len(killed),
                "equivalent": equivalent,
                "rate": len(killed) / max(len(of_name) - equivalent, 1),
                "low": low,
                "high": high,
                **{f"killed_{budget:g}_s": _within(killed, budget) for budget in _BUDGETS_S if budget <= plan.budget_s},
            }
        )
    return rows


# ---- rows and text ---------------------------------------------------------------------------------------------------


def _change(mutant: Mutant) -> str:
    return f"{_short(mutant.before)} becomes {_short(mutant.after)}"


def _reason(each: Judged) -> str:
    return each.reason or _REASONS.get(each.verdict, "")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else line[:77] + "..."


def _named(mutant: Mutant) -> Row:
    return {
        "mutant": mutant.id, "package": mutant.package, "operator": mutant.operator, "module": mutant.module,
        "line": mutant.line, "before": mutant.before, "after": mutant.after,
    }  # fmt: skip


def _row(each: Judged) -> Row:
    best = each.by_strategy.get(each.strategy)
    unit_tests = each.by_strategy.get(UNIT_TESTS)
    return {
        **_named(each.mutant),
        "verdict": each.verdict,
        "strategy": each.strategy,
        "seconds": each.seconds if each.verdict == "killed" else None,
        "end": each.end,
        "contract": best.contract if best else 0,
        "sentence": (best.sentence or best.why) if best else _reason(each),
        "token": best.token if best else "",
        "unit_tests": "" if unit_tests is None else "killed" if unit_tests.end in KILLED else "survived",
    }


def _findings(judged: Sequence[Judged]) -> list[Row]:
    wrong = [
        {
            "code": "reviewed-but-killed",
            "severity": "note",
            "sentence": f"{each.mutant.id} is killed, but a review called it equivalent: {reason_of(each.mutant)}",
        }
        for each in _wrongly_reviewed(judged)
    ]
    return wrong + [
        {
            "code": each.verdict.replace(" ", "-"),
            "severity": "note",
            "sentence": f"{each.mutant.id}, line {each.mutant.line}: {_change(each.mutant)}: {_reason(each)}",
        }
        for each in judged
        if each.verdict in _SURVIVED
    ]


def _share(count: int, total: int) -> str:
    low, high = interval(count, total)
    return f"{count} of {total} ({100 * count / max(total, 1):.1f} %, 95 %: {100 * low:.1f} to {100 * high:.1f})"


def _unreached(plan: MutationPlan) -> list[str]:
    """Return the mutants of statements that no strategy runs, by package and function."""
    counted: dict[str, dict[str, int]] = {}
    for mutant in plan.mutants:
        if not plan.strategies_of(mutant):
            functions = counted.setdefault(mutant.package, {})
            functions[mutant.scope or "module"] = functions.get(mutant.scope or "module", 0) + 1
    if not counted:
        return []
    lines = ["functions with mutants that no strategy runs:"]
    for package in sorted(counted, key=lambda name: (-sum(counted[name].values()), name)):
        names = (f"{name} {count}" if count > 1 else name for name, count in sorted(counted[package].items()))
        lines.append(f"  {package} {sum(counted[package].values())}: {', '.join(names)}")
    return [*lines, ""]


def _text(
    plan: MutationPlan, judged: Sequence[Judged], figures: Row, rates: Sequence[Row], *, interrupted: bool
) -> str:
    lines = [f"{row['sentence']}" for row in _findings(judged) if row["code"] == "reviewed-but-killed"]
    for verdict in _SURVIVED:
        those = [each for each in judged if each.verdict == verdict]
        if those:
            lines.append(f"{verdict}: {_REASONS[verdict]}")
            for each in those:
                lines.append(f"  {each.mutant.id}, line {each.mutant.line}: {_change(each.mutant)}")
                lines += [f"    {each.reason}"] if each.reason else []
            lines.append("")
    lines += _unreached(plan)
    lines.append(f"{'':<22}{'mutants':>8}{'killed':>8}{'equivalent':>12}{'rate %':>8}")
    lines += [
        f"{row['name']:<22}{row['mutants']:>8}{row['killed']:>8}{row['equivalent']:>12}{100 * row['rate']:>8.0f}"
        for row in rates
    ]
    lines.append("")
    for name in (*plan.strategies, UNIT_TESTS):
        key = name.replace(" ", "_")
        if f"tried_{key}" in figures:
            lines.append(f"{name}: {_share(figures[f'killed_{key}'], figures[f'tried_{key}'])}")
    lines += [
        f"killed: {_share(figures['killed'], figures['with_result'])} within {plan.budget_s:g} s of processor time",
        f"without the mutants presumed equivalent: "
        f"{_share(figures['killed'], figures['with_result'] - figures['presumed_equivalent'])}",
    ]
    lines.append(
        f"{figures['without_a_strategy']} of all {counted(len(judged), 'mutant')} are in statements that no "
        "strategy runs"
    )
    if figures["with_result"] < len(judged):
        lines.append(
            f"{counted(len(judged) - figures['with_result'], 'mutant')} without a result; the same command goes on"
        )
    if interrupted:
        lines.append("interrupted")
    return "\n".join(lines)
