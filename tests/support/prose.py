"""Check the prose of the project for refused words and long first lines of docstrings.

    python tests/support/prose.py [FOLDER OR FILE]...

Each finding is one line on standard output. The exit code is 1 if there are findings.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

__all__ = ["findings_in_page", "findings_in_source", "main", "read_words"]

ROOT = Path(__file__).resolve().parents[2]
WORDS = Path(__file__).with_name("words.txt")
FIRST_LINE_MAX = 88
"""Characters of the first line of a docstring."""
EXEMPT = ("tests/support/words.txt", "tests/support/test_prose.py", "docs/adr/")
"""Files that quote the words; decision records keep their original words."""
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def read_words(text: str) -> dict[str, str]:
    """Return the replacement of each word."""
    lines = (line.partition("=") for line in text.splitlines() if line and not line.startswith("#"))
    return {word.strip(): instead.strip() for word, _, instead in lines}


def findings_in_source(name: str, source: str, words: dict[str, str]) -> Iterator[str]:
    """Yield findings in docstrings, comments and sentences of a Python file."""
    pattern = _pattern(words)
    for line, text in _prose(source):
        yield from _words(name, line, text, pattern, words)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and (docstring := ast.get_docstring(node)):
            first = docstring.partition("\n")[0]
            if len(first) > FIRST_LINE_MAX:
                what = f"the first line of a docstring has {len(first)} characters, {FIRST_LINE_MAX} at most"
                yield f"{name}:{node.body[0].lineno}: {what}"


def findings_in_page(name: str, text: str, words: dict[str, str]) -> Iterator[str]:
    """Yield findings in a page of Markdown."""
    pattern = _pattern(words)
    for line, content in enumerate(text.splitlines(), 1):
        yield from _words(name, line, content, pattern, words)


def main(places: list[str]) -> int:
    """Print the findings in these places, by default in all tracked files.

    Returns the exit code.
    """
    words = read_words(WORDS.read_text(encoding="utf-8"))
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *(places or ["."])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = 0
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if name.startswith(EXEMPT) or path.is_symlink() or not path.exists():
            continue
        check = {".py": findings_in_source, ".md": findings_in_page}.get(path.suffix)
        if check is not None:
            for finding in check(name, path.read_text(encoding="utf-8"), words):
                found += 1
                print(finding)
    return 1 if found else 0


def _pattern(words: dict[str, str]) -> re.Pattern[str]:
    """Return the pattern of the words; names with hyphens (ids of bugs, options) are skipped."""
    listed = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    return re.compile(rf"(?<![\w-])({listed})(?![\w-])", re.IGNORECASE)


def _words(name: str, line: int, text: str, pattern: re.Pattern[str], words: dict[str, str]) -> Iterator[str]:
    for found in pattern.findall(text):
        yield f"{name}:{line}: {found!r}: write {words[found.lower()]}"


def _prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of comments, and of strings with a space: docstrings and sentences.

    Comments with the names of planted bugs are left out: the names are identifiers.
    """
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_comment = token.type == tokenize.COMMENT and not token.string.startswith("# planted:")
        if is_comment or (token.type == tokenize.STRING and " " in token.string):
            for number, text in enumerate(token.string.splitlines()):
                yield token.start[0] + number, text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
