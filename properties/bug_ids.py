"""List the ids of planted bugs without an import of the bugs.

The modules of planted bugs load the store, which takes a second. Commands check an id before that.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

__all__ = ["UnknownBug", "module_of_bug", "nearest_bugs", "planted_ids", "require_bugs"]

_BUG_ID = re.compile(r'^    (?:PlantedBug|_bug)\(\s*"([^"]+)"', re.MULTILINE)


class UnknownBug(ValueError):
    """Raise this if no planted bug has the given id."""

    def __init__(self, bug_id: str) -> None:
        near = nearest_bugs(bug_id)
        nearest = f"the nearest are: {', '.join(near)}" if near else "no other is like it"
        super().__init__(f"no planted bug {bug_id!r}; {nearest} (`tornpage bugs list` has all {len(planted_ids())})")


@cache
def planted_ids() -> tuple[str, ...]:
    """Return the ids of all planted bugs, read from the source text of their modules."""
    return tuple(sorted(_modules()))


def module_of_bug(bug_id: str) -> str:
    """Return the name of the module of `properties.planted` that has a bug.

    Raises KeyError for an unknown id.
    """
    return _modules()[bug_id]


@cache
def _modules() -> dict[str, str]:
    sources = [each for each in (files("tornpage.properties") / "planted").iterdir() if each.name.endswith(".py")]
    return {bug: each.name.removesuffix(".py") for each in sources for bug in _BUG_ID.findall(each.read_text("utf-8"))}


def nearest_bugs(bug_id: str) -> list[str]:
    """Return the ids most similar to an unknown one, the most similar first."""
    by_lower = {known.lower(): known for known in planted_ids()}
    wanted = bug_id.lower()
    within = [known for known in by_lower if wanted and wanted in known]
    near = dict.fromkeys([*within, *get_close_matches(wanted, by_lower, n=5, cutoff=0.5)])
    return [by_lower[known] for known in near][:5]


def require_bugs(bug_ids: Iterable[str]) -> None:
    """Raise UnknownBug for the first id that no planted bug has."""
    for bug_id in bug_ids:
        if bug_id not in planted_ids():
            raise UnknownBug(bug_id)
