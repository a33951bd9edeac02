"""What goes wrong with a report, told in one line.

ReportError
"""

__all__ = ["ReportError"]


class ReportError(Exception):
    """`file` cannot be used: `what` says why, `remedy` what to do about it."""

    def __init__(self, file: str, what: str, remedy: str) -> None:
        super().__init__(f"{file}: {what}; {remedy}")
        self.file, self.what, self.remedy = file, what, remedy
