"""List the I/O fault rules and the damages of fields."""

from tornpage.cli.document import Outcome

__all__ = ["aims_outcome"]


def aims_outcome() -> tuple[Outcome, str]:
    """Return the faults and their conditions, as a document and as text."""
    from tornpage.properties.damage.by_field import CHANGES, FIELDS, FILE_CHANGES
    from tornpage.properties.program.fault_calls import KINDS, OPERATIONS
    from tornpage.properties.program.fault_effects import EFFECTS
    from tornpage.properties.program.fault_language import TESTS

    faults = {name: f"{effect.sentence} (hits {', '.join(effect.operations)})" for name, effect in EFFECTS.items()}
    parts: dict[str, dict[str, str]] = {"faults": faults, "tests": TESTS, "kinds": KINDS, "operations": OPERATIONS}
    lines = ["FAULT is a name, or a name, a colon and tests joined by and, or, not and parentheses:", ""]
    lines += ["  sync-lost: kind=log and nth=3", "  no-space: (kind=queue or kind=index) and not every=2"]
    for title, words in parts.items():
        lines += ["", f"{title}:", *(f"  {name:<22}{sentence}" for name, sentence in words.items())]
    damages = {
        "damaged fields": {kind: ", ".join(names) for kind, names in FIELDS.items() if kind != "file"},
        "changes of a field": CHANGES,
        "changes of a file": FILE_CHANGES,
    }
    lines += ["", "`tornpage explore damage` changes one field, or one file, of a closed store at a time."]
    for title, words in damages.items():
        lines += ["", f"{title}:", *(f"  {name:<22}{sentence}" for name, sentence in words.items())]
    parts |= {title.replace(" ", "_"): words for title, words in damages.items()}
    figures = {f"{title}_known": len(words) for title, words in parts.items()}
    tables = {title: {"rows": [{"name": n, "sentence": s} for n, s in words.items()]} for title, words in parts.items()}
    return Outcome("faults", None, figures, tables=tables), "\n".join(lines)
