"""Draws of Hypothesis that hang on seeds alone."""

from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

__all__ = ["draw_from_seeds_alone"]


def draw_from_seeds_alone() -> None:
    """Have Hypothesis mix no constants of our sources into its draws. Idempotent.

    It reads them from each local module that is loaded by then: other ones in each process of the tests, and none where
    this project is installed. So equal seeds gave other examples. No setting says so; a version that does it by another
    name is left as it is, which a test notices (docs/adr/0047).
    """
    if hasattr(providers, "_get_local_constants"):
        none = Constants()
        providers._get_local_constants = lambda: none
