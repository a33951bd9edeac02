"""Judge how a store opens (contract 7)."""

from properties.contract import GuaranteeBroken
from properties.judge.evidence import Recovered
from properties.judge.rulings import judge

__all__ = ["opens_for_writing"]


@judge(7)
def opens_for_writing(found: Recovered) -> None:
    """Contract 7: every state inside the crash model is recovered to a writable store."""
    if found.store.read_only_reason is not None:
        raise GuaranteeBroken(7, "the store opens read-only after a crash", "read-write", found.store.read_only_reason)
