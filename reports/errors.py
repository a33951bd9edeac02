"""Errors of reports, each with a message of one line.

ReportError
"""

__all__ = ["ReportError"]


class ReportError(Exception):
    """`file` cannot be used; `what` is the reason, `remedy` what to do about it."""

    def __init__(self, file: str, what: str, remedy: str) -> None:
        super().__init__(f"{file}: {what}; {remedy}")
        self.file, self.what, self.remedy = file, what, remedy
