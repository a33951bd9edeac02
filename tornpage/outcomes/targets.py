"""Open the stores of users, and read their promises before a test."""

import ast
import inspect
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tornpage.cli.document import refuse, say

if TYPE_CHECKING:
    from tornpage.properties.program.case import Settings

__all__ = [
    "absolute_target",
    "assert_case_holds",
    "assert_store_holds",
    "broken_promise",
    "fixed_settings",
    "refusing_targets",
    "target_name",
    "usable_settings",
]

_EXAMPLES_MAX = 1_000_000
"""Examples of a run that only seconds limit."""


@contextmanager
def refusing_targets() -> Iterator[None]:
    """Say in one line why a target cannot be used, and leave with the exit code of misuse."""
    try:
        yield
    except Exception as error:
        from tornpage.properties.foreign.protocol import TargetUnusable

        if not isinstance(error, TargetUnusable):
            raise
        refuse(str(error))


def usable_settings(target: str, *, bug: str, disk: str | None, answer_seconds: float | None) -> "Settings":
    """Return the settings of a target that opens; refuses any other. Prints its promises."""
    from tornpage.properties.foreign.shapes.registry import MESSAGES
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
    shape = "" if trial.shape == MESSAGES else f", a {trial.shape} store,"
    say(f"{trial.store.name}{shape} promises: {promises.said()}")
    return settings


def absolute_target(target: str) -> str:
    """Return a target with an absolute path, for processes in other directories.

    Names of modules, and commands that the PATH finds, stay as they are.
    """
    from tornpage.properties.foreign.spec import COMMAND_PREFIX

    here = Path.cwd()
    if not target.startswith(COMMAND_PREFIX):
        return _named(target, here)
    command, space, rest = target.removeprefix(COMMAND_PREFIX).lstrip().partition(" ")
    is_path = "/" in command and (here / command).is_file()
    return f"{COMMAND_PREFIX}{shlex.quote(str(here / command)) if is_path else command}{space}{rest}"


def assert_store_holds(
    target: "str | Callable[..., Any]",
    *,
    examples: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    disk: str = "posix-strict",
    arguments: "Mapping[str, Any] | None" = None,
    out: str | None = None,
    start: Literal["open", "first-answer"] = "open",
) -> None:
    """Assert that a store keeps its promises; the error has the smallest failing program.

    `target` is a class or function at the top level of a module that opens a store in a directory, or its name as
    `tornpage check --target` takes it. A relative path in that name starts at the directory of the calling file, or at
    the working directory if there is no such file. `arguments` are literal keyword arguments for the class or function.
    `examples` are runs of the machine, of up to 15 operations each: 60 by default, or as many as fit into `seconds` if
    only these are given. A failure is saved as a case file in the directory `out`. With `start` "first-answer" no
    crash is inside the very first open of a store.

    Raises AssertionError when a promise is broken, or when so few examples prove nothing; TargetUnusable when there is
    no such store; HarnessError when a failure does not show again.
    """
    __tracebackhide__ = True
    name = target_name(target, Path(sys._getframe(1).f_code.co_filename).parent, arguments)
    told = broken_promise(name, examples=examples, seconds=seconds, seed=seed, disk=disk, out=out, start=start)
    if told:
        raise AssertionError(told)


def assert_case_holds(case: str, *, tries: int = 5) -> None:
    """Fail a test of yours unless a case that was found in a store holds.

    The error is the failure as text.

    `case` is a token, or the text of a case file. A relative path of its target starts at the directory of the calling
    file, or at the working directory if there is no such file. A case that holds is run up to `tries` times, because
    some failures depend on time.

    Raises AssertionError when a promise is broken; ValueError for a case that cannot be read; TargetUnusable when there
    is no such store.
    """
    __tracebackhide__ = True
    from tornpage.properties.campaign.replay import replay_several
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explain.evidence import Witness
    from tornpage.properties.program.case import BadToken, Case
    from tornpage.render.counterexample import failure_text

    try:
        read = Case.from_token(case) if case.startswith("tp1-") else Case.from_text(case)
    except BadToken as error:
        raise ValueError(str(error)) from None
    beside = Path(sys._getframe(1).f_code.co_filename).parent
    settings = read.settings
    if settings.target:
        settings = replace(settings, target=_named(settings.target, beside))
    with choose_tracker("auto") as tracker:
        found = replay_several(replace(read, settings=settings), tries, tracker=tracker, witness=Witness())
    if found.failure is not None:
        rate = f"\n  the failure showed in {found.shown} of {found.tries} tries" if found.tries > 1 else ""
        raise AssertionError(failure_text(found.failure) + rate)


def broken_promise(
    target: str,
    *,
    examples: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    disk: str = "posix-strict",
    out: str | None = None,
    start: Literal["open", "first-answer"] = "open",
) -> str:
    """Return the first broken promise of a store as text.

    The text is empty if every promise holds. A run in which something necessary never happened proves nothing, and its
    text says so.

    Raises TargetUnusable when there is no such store; HarnessError when a failure does not show again.
    """
    __tracebackhide__ = True
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explore.foreign.campaign import SHRINK_SECONDS
    from tornpage.properties.explore.machines.check import TARGET_PROFILES, check
    from tornpage.properties.program.case import Settings
    from tornpage.render.counterexample import failure_texts, save_case

    count, steps = TARGET_PROFILES["quick"]
    if examples is not None:
        count = examples
    elif seconds is not None:
        count = _EXAMPLES_MAX
    settings = Settings(target=target, disk=disk)  # type: ignore[arg-type]
    with choose_tracker("auto") as tracker:
        found = check(
            bug="",
            examples=count,
            steps=steps,
            start_seed=seed,
            tracker=tracker,
            machines=("target",),
            fixed=fixed_settings(settings),
            shrink_seconds=SHRINK_SECONDS,
            seconds=seconds,
            from_first_answer=start == "first-answer",
        )
    if found.found:
        failures = [each.failure for each in found.found]
        kept = [] if out is None else [save_case(failure, out) for failure in failures]
        return "\n\n".join([*failure_texts(failures), *(f"  kept in {path}" for path in kept if path)])
    if found.silent:
        more = "more examples" if seconds is None else "more seconds"
        return f"vacuous: {', '.join(found.silent)} never happened; give {more}"
    return ""


def target_name(target: "str | Callable[..., Any]", beside: Path, arguments: "Mapping[str, Any] | None" = None) -> str:
    """Return a target, with arguments for it, as a name that another process finds too.

    A relative path starts at `beside`. Raises TargetUnusable for a target without such a name, and for arguments that
    are no literals.
    """
    from tornpage.properties.foreign.protocol import TargetUnusable
    from tornpage.properties.foreign.spec import COMMAND_PREFIX

    name = _named(target, beside)
    if not arguments:
        return name
    if name.startswith(COMMAND_PREFIX):
        raise TargetUnusable(f"{name}: a command takes its arguments in its own text, not as `arguments`")
    if name.endswith(")"):
        raise TargetUnusable(f"{name} has arguments already; give them once")
    for key, value in arguments.items():
        if not _is_literal(value):
            raise TargetUnusable(f"the argument {key}={value!r} is no literal: give text, numbers, lists or mappings")
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _is_literal(value: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


def _named(target: "str | Callable[..., Any]", beside: Path) -> str:
    """Return a name by which another process finds the target.

    Raises TargetUnusable if the target has no such name.
    """
    from tornpage.properties.foreign.protocol import TargetUnusable
    from tornpage.properties.foreign.spec import without_arguments

    if isinstance(target, str):
        bare, call = without_arguments(target)
        place, colon, name = bare.rpartition(":")
        is_file = bool(colon) and place.endswith(".py") and (beside / place).is_file()
        return f"{beside / place}:{name}{call}" if is_file else target
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
