"""Judge a trace of a consumer group, in eight parts (contracts 13, 16, 17 and 19 to 24).

* J1 At the end of a run each message is finished, or in the dead-letter queue.
* J2 Progress never passes over an entry that is not settled, and never decreases while the broker is up.
* J3 Orderly: one run of a queue at a time, in the order of the queue, under a valid lock.
* J4 At the end each queue has exactly one reader, and shares are those of the strategy.
* J5 A listener gets only entries at or after the first offset of its member. It gets each of them once, unless it
  failed. When a member gives a queue back, all its results of that queue are stored.
* J6 Cached messages and empty pulls stay within their bounds.
* J7 At the end the progress of each queue is its end.
* J8 After a crash, progress is a value that it had before, and within its queue.
* Retries (23): the numbers of copies rise by one. A copy has the delay of its number. The last one is a dead letter.

Each judge is a function of the group before an event and of the event. It raises GuaranteeBroken. `judged` folds a
trace.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from tornpage.model.consumers.events import (
    Arrived,
    Began,
    Event,
    Opened,
    Pulled,
    Quiet,
    Released,
    Stored,
    StoredProgress,
)
from tornpage.model.consumers.state import DELAYS_MS, Group, Held, Place, Queue, dead_topic, retry_topic
from tornpage.model.consumers.step import after, after_crash, first_unsettled, legal_progress
from tornpage.properties.contract import GuaranteeBroken

__all__ = [
    "JUDGES",
    "all_is_delivered",
    "answer_is_of_its_kind",
    "cache_is_bounded",
    "copies_are_bounded",
    "copy_is_whole",
    "is_handed_over_whole",
    "judge_event",
    "judged",
    "local_progress_is_whole",
    "no_pull_is_hot",
    "no_refusal_is_ignored",
    "no_request_is_hot",
    "no_try_is_hot",
    "nothing_is_given_twice",
    "nothing_is_passed_over",
    "order_is_kept",
    "overdue_is_reported",
    "progress_is_corrected",
    "progress_never_decreases",
    "progress_reaches_the_end",
    "queues_have_one_reader",
    "shares_are_those_of_the_strategy",
    "topic_is_original",
]

_FIRST_RETRY_LEVEL = 3
_SCAN_MS = 60_000
"""How often a member looks for overdue listeners."""


# ---- J1, J7: the end of a run ----------------------------------------------------------------------------------------


def all_is_delivered(group: Group, event: Event) -> None:
    """Contract 19 (J1): every subscribed message is finished or a dead letter."""
    if not isinstance(event, Quiet):
        return
    for queue in sorted(group.queues):
        if queue.topic not in (group.rules.topic, retry_topic(group.rules.group)):
            continue
        for offset, entry in enumerate(group.entries(queue)):
            if entry.matches and entry.identity not in group.finished | group.dead | group.excused:
                sentence = f"message {entry.identity} at {offset} of {_text(queue)} is never finished"
                raise GuaranteeBroken(19, sentence, "a success or a dead letter", _held_by(group, queue))


def _held_by(group: Group, queue: Queue) -> str:
    return f"progress {group.progress.get(queue, 0)} of {len(group.entries(queue))}"


def progress_reaches_the_end(group: Group, event: Event) -> None:
    """Contract 16 (J7): given time, a group without faults has no lag."""
    if not isinstance(event, Quiet):
        return
    for queue in sorted(group.queues):
        if queue.topic not in (group.rules.topic, retry_topic(group.rules.group)):
            continue
        end, found = len(group.entries(queue)), group.progress.get(queue, 0)
        if found != end:
            raise GuaranteeBroken(16, f"the group does not reach the end of {_text(queue)}", str(end), str(found))


# ---- J2: progress ----------------------------------------------------------------------------------------------------


def nothing_is_passed_over(group: Group, event: Event) -> None:
    """Contract 21 (J2): every entry below stored progress is settled, and in the queue."""
    if not isinstance(event, StoredProgress) or event.after is None:
        return
    before = group.progress.get(event.queue, 0)
    if event.after <= before:
        return
    end = len(group.entries(event.queue))
    if event.after > end:
        sentence = f"progress of {_text(event.queue)} is stored past the end of the queue"
        raise GuaranteeBroken(21, sentence, f"at most {end}", str(event.after))
    least = first_unsettled(group, event.queue, before)
    if event.after > least:
        entry = group.entries(event.queue)[least]
        sentence = f"progress of {_text(event.queue)} passes over message {entry.identity}"
        raise GuaranteeBroken(21, sentence, f"at most {least}", str(event.after))


def progress_never_decreases(group: Group, event: Event) -> None:
    """Contract 24 (J2): a request of a member does not lower stored progress."""
    if not isinstance(event, StoredProgress):
        return
    before = group.progress.get(event.queue)
    if before is not None and (event.after is None or event.after < before):
        sentence = f"progress of {_text(event.queue)} goes back without a crash"
        raise GuaranteeBroken(24, sentence, f"at least {before}", str(event.after))


# ---- J3: order -------------------------------------------------------------------------------------------------------


def order_is_kept(group: Group, event: Event) -> None:
    """Contract 20 (J3): orderly runs do not overlap, and begin with the next entry.

    A member may still consume messages that the broker has lost in a crash. They overtake none that the broker has.
    With asynchronous flush a crash may take the dead letter of a message. Its member has gone on past the message.
    A run of a member whose lock the broker has let expire may still be there: no lock ends a listener.
    """
    if not isinstance(event, Began) or not group.rules.is_orderly:
        return
    rules, place = group.rules, Place(event.life, event.queue)
    for run in group.runs.values():
        if run.place.queue != event.queue:
            continue
        granted = group.grants.get(run.place)
        if run.place == place or (granted is not None and event.at_ms - granted.granted_ms < rules.lock_life_ms):
            raise GuaranteeBroken(20, f"two listeners run on {_text(event.queue)} at the same time")
    granted = group.grants.get(place)
    if granted is None or event.at_ms - granted.at_ms > rules.lock_valid_ms:
        waited = "no lock" if granted is None else f"a lock of {event.at_ms - granted.at_ms} ms"
        sentence = f"a listener begins on {_text(event.queue)} without a valid lock"
        raise GuaranteeBroken(20, sentence, f"a lock of at most {rules.lock_valid_ms} ms", waited)
    least = first_unsettled(group, event.queue, group.held.get(place, Held()).first or 0)
    entries, first = group.entries(event.queue), event.offsets[0]
    while least < min(first, len(entries)) and entries[least].identity in group.excused:
        least = first_unsettled(group, event.queue, least + 1)
    is_lost = first >= len(entries) or entries[first].identity != event.entries[0].identity
    overtakes = first > least and not is_lost
    if overtakes or list(event.offsets) != sorted(event.offsets):
        sentence = f"a message of {_text(event.queue)} overtakes an earlier one"
        raise GuaranteeBroken(20, sentence, f"offset {least} first", str(list(event.offsets)))


# ---- J4: allocation --------------------------------------------------------------------------------------------------


def queues_have_one_reader(group: Group, event: Event) -> None:
    """Contract 16 and 22 (J4): each queue of the topic has exactly one reader."""
    if not isinstance(event, Quiet) or not group.running:
        return
    for queue, lives in sorted(event.pullers.items()):
        if not lives:
            raise GuaranteeBroken(16, f"no member reads {_text(queue)}", "one reader", "none")
        if len(lives) > 1:
            raise GuaranteeBroken(22, f"several members read {_text(queue)}", "one reader", str(sorted(lives)))


def shares_are_those_of_the_strategy(
    found: Mapping[str, list[int]], expected: Mapping[str, list[int]], *, queues: int, strategy: str
) -> None:
    """Contract 16 and 22 (J4): shares of equal views follow the formulas."""
    dealt = sorted(place for share in found.values() for place in share)
    for place in range(queues):
        if dealt.count(place) != 1:
            number, what = (16, "no member") if place not in dealt else (22, "several members")
            raise GuaranteeBroken(number, f"{what} of {len(found)} get queue {place} by {strategy}", "one member")
    if found != expected:
        raise GuaranteeBroken(22, f"shares by {strategy} are not those of RocketMQ", str(expected), str(found))


# ---- J5: duplicates --------------------------------------------------------------------------------------------------


def nothing_is_given_twice(group: Group, event: Event) -> None:
    """Contract 22 (J5): an entry comes again only without a stored result, or if it failed."""
    if not isinstance(event, Began):
        return
    held = group.held.get(Place(event.life, event.queue))
    if held is None or held.first is None:
        raise GuaranteeBroken(21, f"a listener begins on {_text(event.queue)} before its member has a first offset")
    for offset, entry in zip(event.offsets, event.entries, strict=True):
        if not entry.matches:
            sentence = f"message {entry.identity} of {_text(event.queue)} is delivered against the subscription"
            raise GuaranteeBroken(19, sentence, "only subscribed messages")
        if offset < held.first:
            sentence = f"message {entry.identity} of {_text(event.queue)} is delivered again below stored progress"
            raise GuaranteeBroken(22, sentence, f"offset {held.first} or later", str(offset))
        if offset in held.given:
            sentence = f"message {entry.identity} of {_text(event.queue)} is delivered again by the same member"
            raise GuaranteeBroken(22, sentence, "once", f"again at offset {offset}")


def is_handed_over_whole(group: Group, event: Event) -> None:
    """Contract 22 (J5): a member that gives a queue back has stored its results.

    So the next owner of the queue gets none of these entries again. No listener of the queue runs on, with two
    exceptions for concurrent members. A listener may run longer than the limit of a hand-over. The result of a listener
    that began under an earlier lease counts no more, and the hand-over does not wait for it.
    """
    if not isinstance(event, Released):
        return
    place = Place(event.life, event.queue)
    held = group.held.get(place)
    if held is None or held.first is None:
        return
    running = [run for run in group.runs.values() if run.place == place]
    if not group.rules.is_orderly:
        granted = group.grants.get(place)
        running = [
            run for run in running
            if event.at_ms - run.at_ms < group.rules.hand_over_ms and granted is not None and run.lease == granted.lease
        ]  # fmt: skip
    if running:
        sentence = f"{_text(event.queue)} is given back while a listener runs on it"
        raise GuaranteeBroken(20 if group.rules.is_orderly else 22, sentence, "no run", str(running[0].offsets))
    found = group.progress.get(event.queue, 0)
    least = max(found, held.first)
    while least in held.ended:
        least += 1
    if found < least and least > held.first:
        sentence = f"{_text(event.queue)} is given back before its results are stored"
        raise GuaranteeBroken(22, sentence, f"progress {least}", str(found))


# ---- answers ---------------------------------------------------------------------------------------------------------

_ANSWERS: Mapping[str, str] = {
    "Heartbeat": "Done", "Leave": "Done", "LockQueues": "Locked", "Members": "MembersFound", "Pull": "Pulled",
    "QueryBounds": "Bounds", "QueryOffset": "OffsetFound", "Route": "Routed", "SearchOffset": "OffsetFound",
    "SendBack": "SentBack", "SendToRetry": "SentBack", "UnlockQueues": "Done", "UpdateOffset": "OffsetUpdated",
}  # fmt: skip


def answer_is_of_its_kind(request: str, answer: str, reason: object, sentence: object) -> None:
    """Contract 8: a request has its answer, or a refusal with a reason and a sentence.

    `request` and `answer` are names of kinds; `reason` and `sentence` are those of a refusal.
    """
    if answer == "Refused":
        if type(reason).__name__ != "Refusal" or not isinstance(sentence, str):
            raise GuaranteeBroken(8, f"a refusal of {request} has no reason", "a Refusal", f"{reason!r}, {sentence!r}")
    elif answer != _ANSWERS[request] and not answer.startswith("_"):
        raise GuaranteeBroken(8, f"the answer to {request} is of another kind", _ANSWERS[request], answer)


# ---- J6: bounds ------------------------------------------------------------------------------------------------------


def cache_is_bounded(group: Group, event: Event) -> None:
    """Contract 16 (J6): a member has at most the threshold of a queue in its memory."""
    if not isinstance(event, Arrived):
        return
    held = group.held.get(Place(event.life, event.queue), Held())
    entries = group.entries(event.queue)
    cached = [
        offset
        for offset in held.arrived | set(event.offsets)
        if offset not in held.ended and offset < len(entries) and entries[offset] not in group.settled
    ]
    most = group.rules.threshold
    if len(cached) > most:
        sentence = f"a member caches more of {_text(event.queue)} than its threshold"
        raise GuaranteeBroken(16, sentence, f"at most {most}", str(len(cached)))


def no_pull_is_hot(group: Group, event: Event) -> None:
    """Contract 16 (J6): a member does not repeat empty pulls without a pause."""
    if not isinstance(event, Pulled) or event.count:
        return
    recent = group.empty_pulls.get(Place(event.life, event.queue), ())
    found = sum(each > event.at_ms - 1_000 for each in recent) + 1
    if found > group.rules.empty_pulls_max:
        sentence = f"a member pulls from {_text(event.queue)} without a pause"
        raise GuaranteeBroken(16, sentence, f"at most {group.rules.empty_pulls_max} empty pulls a second", str(found))


def no_request_is_hot(sent: Mapping[str, Collection[int]], most: int) -> None:
    """Contract 16 (J6): a member sends few requests of a kind about one queue within a second.

    `sent` has the times of the last second by kind and queue. Pulls are judged by `no_pull_is_hot`.
    """
    for what, times in sent.items():
        if len(times) > most:
            raise GuaranteeBroken(16, f"a member repeats {what} without a pause", f"{most} a second", str(len(times)))


def no_refusal_is_ignored(hasty: Sequence[str]) -> None:
    """Contract 16 (J6): a refused update of progress is not repeated within a second."""
    if hasty:
        raise GuaranteeBroken(16, "a member repeats a request at once that was refused", "a second later", hasty[0])


def no_try_is_hot(group: Group, event: Event) -> None:
    """Contract 23 (J6): a failed message comes to its listener again after a pause."""
    if not isinstance(event, Began):
        return
    failed = group.held.get(Place(event.life, event.queue), Held()).failed
    for offset in event.offsets:
        waited_ms = event.at_ms - failed.get(offset, event.at_ms - group.rules.pause_ms)
        if waited_ms < group.rules.pause_ms:
            sentence = f"a failed message of {_text(event.queue)} is tried again without a pause"
            raise GuaranteeBroken(23, sentence, f"{group.rules.pause_ms} ms", f"{waited_ms} ms")


def overdue_is_reported(ran_ms: int, minutes: int, *, is_reported: bool) -> None:
    """Contract 16: a run that takes longer than its limit is a finding after the next scan.

    No other run is a finding.
    """
    limit_ms = 60_000 * minutes
    if is_reported and ran_ms <= limit_ms:
        raise GuaranteeBroken(16, "a listener counts as overdue too early", f"more than {limit_ms} ms", f"{ran_ms} ms")
    if not is_reported and ran_ms > limit_ms + _SCAN_MS:
        raise GuaranteeBroken(
            16, "no finding names an overdue listener", f"at {limit_ms + _SCAN_MS} ms", f"{ran_ms} ms"
        )


# ---- J8: the broker after a crash ------------------------------------------------------------------------------------


def progress_is_corrected(group: Group, event: Event) -> None:
    """Contract 17 (J8): after a crash progress is a value that it had, and within its queue."""
    if not isinstance(event, Opened):
        return
    kept = group.with_log(tuple(each for each in group.log if each.end <= event.end))
    if all(kept.log != each.log for each in after_crash(group)):
        sentence = "the broker loses messages that the crash keeps"
        raise GuaranteeBroken(2, sentence, f"a log up to {group.durable}", str(event.end))
    for queue, offset in sorted(event.progress.items()):
        end = len(kept.entries(queue))
        if offset > end:
            sentence = f"progress of {_text(queue)} is past the end of the queue after a crash"
            raise GuaranteeBroken(17, sentence, f"at most {end}", str(offset))
        legal = legal_progress(kept, queue)
        if offset not in legal:
            sentence = f"progress of {_text(queue)} after a crash is not one that it had"
            raise GuaranteeBroken(13, sentence, " or ".join(map(str, sorted(legal))), str(offset))


def local_progress_is_whole(found: int | None, versions: tuple[int | None, ...]) -> None:
    """Contract 13: the local progress of a member is one that it has saved, or was saving."""
    if found not in versions:
        sentence = "the local progress of a member after a crash is not one that it has saved"
        raise GuaranteeBroken(13, sentence, " or ".join(map(str, versions)), str(found))


# ---- retries ---------------------------------------------------------------------------------------------------------


def topic_is_original(found: str, topic: str) -> None:
    """Contract 23: a listener gets a copy with the topic of its message."""
    if found != topic:
        raise GuaranteeBroken(23, "a listener gets a message with another topic", topic, found)


def copy_is_whole(identity: int, original: Mapping[str, object], copy: Mapping[str, object]) -> None:
    """Contract 23: a copy has everything of its message, and names it."""
    if original != copy:
        wrong = {name: value for name, value in copy.items() if original.get(name) != value}
        sentence = f"the copy of message {identity} is not equal to its message"
        raise GuaranteeBroken(23, sentence, str({name: original.get(name) for name in wrong}), str(wrong))


def copies_are_bounded(group: Group, event: Event) -> None:
    """Contract 23: a copy follows a failed try, and the last one is a dead letter."""
    rules = group.rules
    if isinstance(event, Arrived):
        _copies_are_due(group, event)
    if not isinstance(event, Stored):
        return
    record, entry = event.record, event.record.entry
    is_dead = record.queue.topic == dead_topic(rules.group)
    if not (is_dead or record.level):
        return
    tried, name = entry._replace(times=entry.times - 1), f"message {entry.identity}"
    failed = [each for each in group.tries if each.identity == entry.identity]
    if not failed:
        raise GuaranteeBroken(23, f"{name} is sent back without a failed try", "a failed try", "none")
    tries = max(group.tries[each] + each.times for each in failed) - 1 if rules.is_orderly else tried.times
    if group.copies.get(entry, 0) >= sum(group.tries[each] for each in failed):
        raise GuaranteeBroken(23, f"{name} is copied twice for one failed try", "one copy", "another one")
    asked = group.asked.get(tried, frozenset())
    if is_dead and tries < rules.times_max and -1 not in asked:
        sentence = f"{name} becomes a dead letter too early"
        raise GuaranteeBroken(23, sentence, f"after {rules.times_max} retries", f"after {tries}")
    if tried not in group.tries and not (is_dead and rules.is_orderly):
        raise GuaranteeBroken(23, f"{name} is sent back without its failed try", f"try {entry.times}", str(failed))
    if not is_dead and tried.times >= rules.times_max:
        sentence = f"{name} is retried after its last try"
        raise GuaranteeBroken(23, sentence, f"a dead letter after {rules.times_max} retries", f"retry {entry.times}")
    usual = min(_FIRST_RETRY_LEVEL + tried.times, len(DELAYS_MS))
    legal = {level or usual for level in asked} or {usual}
    if not is_dead and record.level not in legal:
        wanted = " or ".join(f"level {level}" for level in sorted(legal))
        raise GuaranteeBroken(23, f"{name} is retried with another delay", wanted, f"level {record.level}")


def _copies_are_due(group: Group, event: Arrived) -> None:
    if event.queue.topic != retry_topic(group.rules.group):
        return
    entries = group.entries(event.queue)
    for offset in event.offsets:
        if offset >= len(entries):
            continue
        stored = [each for each in group.log if each.level and each.entry == entries[offset]]
        if stored and event.at_ms < min(each.at_ms + DELAYS_MS[each.level - 1] for each in stored):
            raise GuaranteeBroken(23, f"a copy of message {entries[offset].identity} is delivered before it is due")


# ---- all of them -----------------------------------------------------------------------------------------------------

Judge = Callable[[Group, Event], None]

JUDGES: tuple[Judge, ...] = (
    nothing_is_passed_over,
    progress_never_decreases,
    order_is_kept,
    nothing_is_given_twice,
    is_handed_over_whole,
    cache_is_bounded,
    no_pull_is_hot,
    no_try_is_hot,
    progress_is_corrected,
    copies_are_bounded,
    all_is_delivered,
    progress_reaches_the_end,
    queues_have_one_reader,
)
"""All judges of a trace."""


def judge_event(group: Group, event: Event) -> Group:
    """Judge one event; return the group after it. Raises GuaranteeBroken."""
    for judge in JUDGES:
        judge(group, event)
    return after(group, event)


def judged(events: Iterable[Event], group: Group | None = None) -> Group:
    """Judge a whole trace; return the group after it.

    Raises GuaranteeBroken at the first event that breaks a rule.
    """
    group = Group() if group is None else group
    for event in events:
        group = judge_event(group, event)
    return group


def _text(queue: Queue) -> str:
    return f"queue {queue.queue_id} of {queue.topic}"
