"""Text and numbers for people, without characters that control terminals or pages.

Characters that change the reading direction are made visible too.
"""

__all__ = ["counted", "listed", "number", "shortened", "tick", "visible"]


def visible(text: str) -> str:
    r"""Return `text` with each invisible character written out, as `\x1b` or `\u202e`.

    Line ends and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else _escape(ord(c)) for c in text)


def shortened(text: str, *, length: int) -> str:
    """Return `text` on one visible line of at most `length` characters, cut in the middle."""
    line = visible(" ".join(text.split()))
    if len(line) <= length:
        return line
    head = (length - 1) // 2
    return f"{line[:head]}…{line[len(line) - (length - 1 - head) :]}"


def number(value: float) -> str:
    """Return a number with separators, floats with three significant digits at least."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def counted(count: float, one: str, several: str = "") -> str:
    """Return a number with its word: 1 record, 2 records."""
    return f"{number(count)} {one if count == 1 else several or f'{one}s'}"


def tick(value: float) -> str:
    """Return a number for the tick of an axis: 0.1, 10, 10k, 2.5M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def listed(words: list[str]) -> str:
    """Return words as a list in a sentence: a, b and c."""
    return " and ".join([*[", ".join(words[:-1])][: len(words) > 1], *words[-1:]])


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
