"""Make Hypothesis examples depend on the seed only."""

from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

__all__ = ["use_seeds_only"]


def use_seeds_only() -> None:
    """Stop Hypothesis from mixing constants of local sources into its draws. Idempotent.

    Hypothesis reads constants from each local module loaded so far. Those differ between the processes of a test run,
    and there are none where this project is installed, so equal seeds gave different examples. No setting controls
    this. A version of Hypothesis that uses another name is left unchanged, which a test notices (docs/adr/0047).
    """
    if hasattr(providers, "_get_local_constants"):
        none = Constants()
        providers._get_local_constants = lambda: none
