"""Open the stores of users, and read their promises before a test."""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import refuse, say

if TYPE_CHECKING:
    from tornpage.properties.program.case import Settings

__all__ = ["assert_store_holds", "fixed_settings", "refusing_targets", "usable_settings"]


@contextmanager
def refusing_targets() -> Iterator[None]:
    """Say in one line why a target cannot be used, and leave with the exit code of misuse."""
    from tornpage.properties.foreign.protocol import TargetUnusable

    try:
        yield
    except TargetUnusable as error:
        refuse(str(error))


def usable_settings(target: str, *, bug: str, disk: str | None, answer_seconds: float | None) -> "Settings":
    """Return the settings of a target that opens; refuses any other. Prints its promises."""
    from tornpage.properties.foreign.trial import TargetTrial
    from tornpage.properties.program.case import Settings

    settings = Settings(target=target, bug=bug)
    if disk is not None:
        settings = replace(settings, disk=disk)  # type: ignore[arg-type]
    if answer_seconds is not None:
        settings = replace(settings, answer_seconds=answer_seconds)
    with refusing_targets():
        trial = TargetTrial(settings)
        promises = trial.promises
        trial.end()
    reads = [name for name in ("offsets", "queues", "index") if getattr(promises, name)]
    said = f"durable after {promises.durable}, safe from a kill after {promises.kill}; {', '.join(reads)}"
    say(f"{trial.store.name} promises: {said}")
    return settings


def assert_store_holds(
    target: "str | Callable[..., Any]", *, examples: int = 60, seed: int = 0, disk: str = "posix-strict"
) -> None:
    """Assert that a store keeps its promises; the error has the smallest failing program.

    `target` is a class or function at the top level of a module that opens a store in a directory, or its name as
    `tornpage check --target` takes it. A relative path in that name starts at the directory of the calling file, or at
    the working directory if there is no such file. `examples` are runs of the machine, of up to 15 operations each.

    Raises AssertionError when a promise is broken, or when so few examples prove nothing; TargetUnusable when there is
    no such store; HarnessError when a failure does not show again.
    """
    __tracebackhide__ = True
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explore.foreign.campaign import SHRINK_SECONDS
    from tornpage.properties.explore.machines.check import TARGET_PROFILES, check
    from tornpage.properties.program.case import Settings
    from tornpage.render.counterexample import failure_text

    name = _named(target, Path(sys._getframe(1).f_code.co_filename).parent)
    settings = Settings(target=name, disk=disk)  # type: ignore[arg-type]
    with choose_tracker("auto") as tracker:
        found = check(
            bug="",
            examples=examples,
            steps=TARGET_PROFILES["quick"][1],
            start_seed=seed,
            tracker=tracker,
            machines=("target",),
            fixed=fixed_settings(settings),
            shrink_seconds=SHRINK_SECONDS,
        )
    if found.failure is not None:
        raise AssertionError(failure_text(found.failure))
    if found.silent:
        raise AssertionError(f"vacuous: {', '.join(found.silent)} never happened; give more examples")


def _named(target: "str | Callable[..., Any]", beside: Path) -> str:
    """Return a name by which another process finds the target.

    Raises TargetUnusable if the target has no such name.
    """
    from tornpage.properties.foreign.protocol import TargetUnusable

    if isinstance(target, str):
        place, colon, name = target.rpartition(":")
        is_file = bool(colon) and place.endswith(".py") and (beside / place).is_file()
        return f"{beside / place}:{name}" if is_file else target
    name = getattr(target, "__qualname__", "")
    try:
        file = inspect.getsourcefile(target)
    except TypeError:
        file = None
    if not file or not name or "<" in name:
        raise TargetUnusable(
            f"{target!r} has no name that another process could find: define it at the top level of a module"
        )
    return f"{Path(file).resolve()}:{name}"


def fixed_settings(settings: "Settings") -> dict[str, Any]:
    """Return what a machine may not draw."""
    return {"target": settings.target, "disk": settings.disk, "answer_seconds": settings.answer_seconds}
