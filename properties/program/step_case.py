"""Hold a case of several processes, as readable JSON or one printable token.

A case is settings and operations, both frozen dataclasses with defaults. A `CaseForm` describes one kind of case: its
token prefix, its key in a case file, and how its settings and operations are read.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

from tornpage.properties.program.packing import BadToken, packed, unpacked
from tornpage.properties.program.steps import changed, read_step

__all__ = ["CaseForm", "StepCase"]

FORMAT = 1

Settings = TypeVar("Settings")
Operation = TypeVar("Operation")


@dataclass(frozen=True, slots=True)
class CaseForm:
    """Describe the token and the case file of one kind of case.

    `name` is used in errors. `refusal` returns why settings cannot be run, or an empty string.
    """

    prefix: str
    key: str
    name: str
    settings: type
    operations: Mapping[str, Any]
    refusal: Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class StepCase(Generic[Settings, Operation]):
    """Settings and operations of a program over several processes."""

    settings: Settings
    operations: tuple[Operation, ...]

    FORM: ClassVar[CaseForm]

    def document(self) -> dict[str, Any]:
        """Return the readable form."""
        operations: tuple[Any, ...] = self.operations
        return {
            self.FORM.key: FORMAT,
            "settings": changed(self.settings),
            "operations": [{"op": each.op, **changed(each)} for each in operations],
        }

    def with_bug(self, bug: str) -> Self:
        """Return the case with another planted bug, or without one."""
        settings: Any = self.settings
        return replace(self, settings=replace(settings, bug=bug))

    def token(self) -> str:
        """Return the case as one printable word."""
        return packed(self.FORM.prefix, self.document())

    @classmethod
    def from_token(cls, token: str) -> Self:
        """Read a token. Raises BadToken."""
        return cls.from_text(unpacked(cls.FORM.prefix, token))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read the readable form. Raises BadToken."""
        form = cls.FORM
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadToken(f"the file is not JSON ({error}); name a case file that a run wrote with --out") from error
        if not isinstance(document, dict) or document.get(form.key) != FORMAT:
            raise BadToken(f"this is not a {form.name} of format {FORMAT} (key {form.key})")
        try:
            settings = form.settings(**document["settings"])
            operations = tuple(read_step(form.operations, dict(item)) for item in document["operations"])
            refusal = form.refusal(settings)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadToken(f"the {form.name} cannot be read: {error}") from error
        if refusal:
            raise BadToken(refusal)
        return cls(settings, operations)
