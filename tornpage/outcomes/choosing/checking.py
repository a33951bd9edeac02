"""Check a chosen policy on the real store, and say by how much it misses its budget."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import refuse
from tornpage.cli.progress import steps_progress
from tornpage.properties.judge.rulings import counted

if TYPE_CHECKING:
    from tornpage.sim.choosing.choice import Budget
    from tornpage.sim.experiments.policies import StorePolicy

__all__ = ["check_outcome", "judged"]

CUTS = 50
STEPS = 2


def check_outcome(
    directory: str,
    policy: "StorePolicy",
    budget: "Budget",
    *,
    rate_per_s: float,
    record_bytes: int,
    seconds: float,
    crash: str,
    share: float,
    seed: int,
) -> dict[str, Any]:
    """Run a policy for some seconds in a directory; return its figures and a verdict."""
    from tornpage.bench.validation.policy_check import check_policy
    from tornpage.impl.errors import StoreError
    from tornpage.properties.contract import HarnessError

    try:
        with steps_progress("checking", total=STEPS) as show:
            found = check_policy(
                directory,
                policy,
                rate_per_s=rate_per_s,
                record_bytes=record_bytes,
                seconds=seconds,
                cuts=CUTS,
                crash=crash,
                share=share,
                seed=seed,
                progress=show,
            )
    except (OSError, StoreError, HarnessError) as error:
        refuse(f"cannot check in {directory}: {error}; name another --check-directory, or a lower --rate")
    return judged(asdict(found), budget, share)


def judged(figures: dict[str, Any], budget: "Budget", share: float = 1.0) -> dict[str, Any]:
    """Return the figures with `meets` and a sentence.

    The loss is the greater one of measurement and cuts.
    """
    loss_ms = max(figures["loss_ms"], figures["cut_loss_ms"])
    over = []
    if figures["put_p99_us"] > budget.put_p99_us:
        over.append(f"the p99 exceeds the limit by {(figures['put_p99_us'] - budget.put_p99_us) / 1e3:.3g} ms")
    if loss_ms > budget.loss_ms:
        over.append(f"the loss exceeds the limit by {loss_ms - budget.loss_ms:.3g} ms")
    cuts = (
        f"; {counted(figures['cuts'], 'power cut')} of a recorded disk took at most {figures['cut_loss_messages']:,} "
        f"messages, {figures['cut_loss_ms']:.3g} ms"
        if figures["cuts"]
        else ""
    )
    moment = "the worst moment" if share == 1 else f"a share of {share:g} of the moments"
    sentence = (
        f"{counted(figures['messages'], 'put')}, p99 {figures['put_p99_us'] / 1e3:.3g} ms; {moment} would have "
        "taken at most "
        f"{counted(figures['loss_messages'], 'acknowledged message')}, {figures['loss_ms']:.3g} ms{cuts}. "
        + (f"It does not meet the budget: {' and '.join(over)}." if over else "It meets the budget.")
    )
    return {**figures, "meets": not over, "sentence": sentence}
