"""Sentences of a redacted document: those that hold nothing but our words and numbers, and what stands for the others.

Whether a sentence quotes the store cannot be seen from it. So the sentences of rulings that do not are listed here, `N`
for a number; of any other one the part that is listed is kept, up to a colon or semicolon.
"""

import re

from tornpage.finding_codes import FindingCode, finding_codes

__all__ = ["LEFT_OUT", "SENTENCES", "bounded", "harmless_sentence", "harmless_value", "said_of"]

LEFT_OUT = "…"
"""Stands for what quotes the store, or might."""

SENTENCES = (
    # 1 to 3
    "N records? from N to N, byte for byte as in the image(, and as put)?",
    "the log does not end where the store says",
    "the log begins elsewhere than in the image",
    "the log differs from the image",
    "nobody was told of the record at N; delayed messages are copied",
    "a record was never put in this form",
    "a record that was put is missing in the middle of the log",
    "N valid records that nothing separates from the others are gone",
    "the log ends below its durable floor",
    r"what was acknowledged is not in an image \(--truth FILE says it\); "
    "nothing is missing of N valid records? up to N",
    "none is missing of N records? (flushed|acknowledged before the process died)",
    "N records that were (flushed|acknowledged before the process died) are gone",
    "the image itself has lost N records that were (flushed|acknowledged before the process died), from N on, which no "
    r"crash may do; with N behind them they are not in the log \(number 7 says what is due then\)",
    "everything behind N is zero, durably; (nothing was there|bytes from N on were erased)",
    "a byte behind the end is still (in the page cache|on the disk)",
    "a read-only store cuts nothing",
    # 4 and 5
    "N units? in N queues?, byte for byte as the records say",
    "N entr(y|ies), link by link as the records say; keys are found",
    "the store has no index",
    "the index begins behind a file that is gone, which has the time of its first entry",
    "some topics were deleted, and which records are dispatched no more is not judged",
    "due times in the image are not those of the default delay levels, and the levels are not in it",
    "index files have several sizes, and which one was configured cannot be told",
    "a record has a topic or properties that are no UTF-8: what Java makes of them is not decided here",
    "a read-only store leaves queues and index as they are; what it serves is judged by number 7",
    # 6
    "recovering again changes nothing; N crashes at N of the N file operations of the recovery lead to the same store",
    "recovering twice is not recovering once",
    "looking at the whole log leads elsewhere",
    "a (kill|power loss) at operation N of the recovery",
    "read-only once and read-write once",
    "a damaged store is changed by opening it again",
    "the log has other files( on the disk)?",
    "the log differs( on the disk)?",
    "a record that was cut is in no quarantine( on the disk)?",
    # 7
    "the store does not open",
    "the store did not open",
    "the store opens read-write(; in quarantine: N records? from behind the cut)?",
    "the store opens read-only after a crash",
    "damage goes unnoticed",
    "N valid records behind the cut are in no quarantine, and no floor says they may go",
    "no finding names file and offset of the damage",
    "a damaged store cannot be read",
    "a damaged store serves what does not verify",
    "N records that verify are not served",
    "a damaged store was changed by opening it",
    "read-only, changed nothing, serves N records?",
    # 9 and 13
    "a read-only store moves no watermark",
    "the watermarks are out of order",
    "the checkpoint is newer than the durable log",
    "the checkpoint is newer than the durable queues and index",
    "minimum, flushed, committed and written are N, N, N, N; the checkpoint is not ahead",
    "recovery changed( on the disk)? what a file says",
    "a small file of the store is not whole( on the disk)?",
    "checkpoint and floor are whole, and N progress files?, within the queues",
    # 14, 16 and 17
    "a second opener is let in",
    "a second opener fails for another reason than the first",
    "a second opener changed something before it was refused",
    "a second opener is refused, and has changed nothing",
    "a read-only store dispatches nothing",
    "something was left to dispatch when the store had opened",
    "the store opened with nothing left to dispatch; requests and services are not in an image",
    "a queue has records in front of the log only; with which number it goes on is not in the log",
    "bounds of all queues are right; who reads a third of them gets every record, in order",
    # what an image can never tell
    "a status is the answer to a put, and an image has no puts",
    "which files were due to go is not in an image",
    "buffers in the hands of readers end with the process",
    "when a message was delivered is not in an image; that it waits in its queue is a part of number 4",
    "what a replica had is not in the image of its master",
)
_NUMBER_MAX = 1 << 47
"""No offset, size or time (ms) of a store comes near; eight bytes of a message that stand in the place of one do."""
_NUMBER = r"[0-9][0-9,]*"
_HARMLESS = re.compile("|".join(f"(?:{re.sub('N(?![a-z])', _NUMBER, sentence)})" for sentence in SENTENCES))
_SEPARATOR = re.compile("[:;] ")

_OF_OFFSETS = re.compile(
    "the log (does not end where the store says|begins elsewhere than in the image|ends below its durable floor)"
    f"|{_NUMBER} valid records that nothing separates from the others are gone"
    "|the watermarks are out of order|the checkpoint is newer than the durable log"
    "|something was left to dispatch when the store had opened|the store opens read-only after a crash"
    "|damage goes unnoticed.*",
    re.DOTALL,
)
"""Sentences whose expected and found values are offsets, times, or words of ours. Others may have bytes there."""
_OFFSETS = re.compile(f"{_NUMBER}(?:, {_NUMBER})*|{_NUMBER} at most|min <= flushed = written|read-only|read-write")


def harmless_sentence(sentence: str) -> str:
    """Return a ruling's sentence as far as it is known not to quote the store."""
    if _HARMLESS.fullmatch(sentence):
        return _bounded(sentence)
    for separator in _SEPARATOR.finditer(sentence):
        if _HARMLESS.fullmatch(sentence, 0, separator.start()):
            return _bounded(sentence[: separator.end()]) + harmless_sentence(sentence[separator.end() :])
    return LEFT_OUT


def harmless_value(sentence: str, value: str) -> str:
    """Return what a sentence expected or found if it is known not to quote the store, else nothing."""
    return _bounded(value) if _OF_OFFSETS.fullmatch(sentence) and _OFFSETS.fullmatch(value) else ""


def bounded(number: int | str | None) -> int | None:
    """Return a number; -1 for one that no store has, which may be bytes of a message."""
    if number is None or isinstance(number, bool):
        return number
    return int(number) if -_NUMBER_MAX < int(number) < _NUMBER_MAX else -1


def _bounded(text: str) -> str:
    return re.sub(_NUMBER, lambda number: number[0] if bounded(number[0].replace(",", "")) != -1 else "-1", text)


def said_of(code: str, severity: str, place: str) -> dict[str, str]:
    """Return message and remedy that docs/findings.md has for a code; for a code of the store itself, the place."""
    said = finding_codes().get(code, FindingCode(severity, place, ""))
    return {"message": said.meaning.replace("`", ""), "remedy": _remedy(said.remedy, severity)}


def _remedy(remedies: str, severity: str) -> str:
    """Return the remedy for a severity; some codes have one for each, as "damage: …; tear: …"."""
    each = re.split(r"(?:^|; )(damage|tear|note): ", remedies.replace("`", ""))
    return dict(zip(each[1::2], each[2::2], strict=True)).get(severity, each[0] or remedies.replace("`", ""))
