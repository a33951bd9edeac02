"""Write adapter skeletons, each a small correct store with the promises it keeps."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tornpage.cli.document import Outcome, refuse

__all__ = ["LANGUAGES", "Language", "init_outcome", "template"]

_SKELETONS = Path(__file__).resolve().parent.parent / "skeletons"
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Language:
    """Say how the skeleton of a language is named, built and run.

    The names of a store replace @FILE@, @NAME@ and @CLASS@.
    """

    file: str
    builds: str
    target: str

    def filled(self, text: str, name: str) -> str:
        """Return a text with the names of a store in it."""
        whole = "".join(part.capitalize() for part in name.split("_"))
        return text.replace("@FILE@", self.file).replace("@NAME@", name).replace("@CLASS@", whole)


LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {
        "python": Language("@NAME@.py", "", "@FILE@:@CLASS@"),
        "go": Language("@NAME@.go", "go build -o @NAME@ @FILE@", "cmd:./@NAME@ {dir}"),
        "rust": Language("@NAME@.rs", "rustc -O -o @NAME@ @FILE@", "cmd:./@NAME@ {dir}"),
        "java": Language("@CLASS@.java", "javac @FILE@", "cmd:java -cp . @CLASS@ {dir}"),
        "node": Language("@NAME@.cjs", "", "cmd:node @FILE@ {dir}"),
        "c": Language("@NAME@.c", "gcc -O2 -o @NAME@ @FILE@", "cmd:./@NAME@ {dir}"),
    }
)


def template(language: str, shape: str) -> Path:
    """Return the skeleton of a shape in a language. It may not exist."""
    return _SKELETONS / (f"{language}.tmpl" if shape == "messages" else f"{shape}.{language}.tmpl")


def init_outcome(name: str, *, language: str, shape: str = "messages", directory: str) -> tuple[Outcome, str]:
    """Write the skeleton of an adapter, and for Python its test; return outcome and text.

    Nothing is overwritten.
    """
    if not template(language, shape).is_file():
        there = [each for each in LANGUAGES if template(each, shape).is_file()]
        refuse(f"there is no {shape} skeleton in {language}, only in {' and '.join(there)}; see docs/targets/shapes.md")
    if not _NAME.fullmatch(name):
        refuse(f"{name!r} is no name for a store: small letters, digits and _, a letter first")
    folder, spoken = Path(directory), LANGUAGES[language]
    if not folder.is_dir():
        refuse(f"{folder} is no directory; create it, or name another with --directory")
    files = {folder / spoken.filled("@FILE@", name): template(language, shape)}
    if language == "python":
        files[folder / f"test_{name}.py"] = _SKELETONS / "python_test.tmpl"
    for path in files:
        if path.exists():
            refuse(f"{path} is there already; choose another NAME, or take it away")
    for path, source in files.items():
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(spoken.filled(source.read_text("utf-8"), name))
        except OSError as error:
            refuse(f"cannot write {path}: {error.strerror}; name another --directory")
    target = spoken.filled(spoken.target, name)
    quoted = f"'{target}'" if " " in target else target
    builds = [spoken.filled(spoken.builds, name)] if spoken.builds else []
    tests = [f"pytest test_{name}.py"] if language == "python" else []
    steps = [*builds, f"tornpage explore target {quoted} --seconds 30", *tests]
    extra = {"files": [str(path) for path in files], "steps": steps}
    where = [] if directory == "." else [f"cd {directory}"]
    lines = [*map(str, files), "", "next:", *(f"  {step}" for step in [*where, *steps])]
    return Outcome("init", None, {}, extra=extra), "\n".join(lines)
