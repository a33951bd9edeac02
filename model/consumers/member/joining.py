"""Specify how a member joins its group at each broker, and leaves (contract 16).

1. A heartbeat is sent at the start, after a wish for one, and every `every_ms`. One at a time is under way to a broker.
2. A heartbeat that is refused or has no answer is repeated a second after its end is known. A refusal is a finding.
3. A broker has accepted the member while its last heartbeat with a known end was answered with Done.
4. A request to leave is repeated until a broker has answered, three times at most.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tornpage.model.consumers.member.asking import NEVER, Ask, Asking, Sent, looked_at

__all__ = ["Joining"]

_AGAIN_MS, _LEAVE_MS, _LEAVES_MAX = 1_000, 3_000, 3


@dataclass(frozen=True, slots=True)
class Joining:
    """Heartbeats and requests to leave, by broker.

    `due` has the time of the next heartbeat, in milliseconds.
    """

    group: str
    process: str
    is_broadcasting: bool
    every_ms: int
    timeout_ms: int
    due: Mapping[str, int]
    waiting: Mapping[str, Sent] = field(default_factory=dict)
    joined: frozenset[str] = frozenset()
    leaves: Mapping[str, tuple[Sent, ...]] = field(default_factory=dict)

    def woken(self) -> "Joining":
        """Wish for a heartbeat to each broker."""
        return replace(self, due=dict.fromkeys(self.due, 0))

    def step(self, subscriptions: tuple[object, ...], now_ms: int, ask: Asking) -> tuple["Joining", int]:
        """Take answers and send due heartbeats; when the next step is due."""
        due, waiting, joined = dict(self.due), dict(self.waiting), set(self.joined)
        for broker in self.due:
            outcome = waiting[broker].outcome(now_ms) if broker in waiting else None
            if outcome == ("Done",):
                joined.add(broker)
            elif outcome is not None:
                joined.discard(broker)
                due[broker] = min(due[broker], now_ms + _AGAIN_MS)
                if outcome[0] == "Refused":
                    ask.finding(f"{broker} refuses the heartbeat")
            if outcome is not None:
                del waiting[broker]
            if broker not in waiting and due[broker] <= now_ms:
                about = (self.group, self.process, subscriptions, self.is_broadcasting)
                waiting[broker] = ask(Ask(broker, "Heartbeat", self.timeout_ms, about))
                due[broker] = now_ms + self.every_ms
        idle = [at_ms for broker, at_ms in due.items() if broker not in waiting]
        after = replace(self, due=due, waiting=waiting, joined=frozenset(joined))
        return after, min([*idle, looked_at(waiting.values(), now_ms)])

    def leave(self, now_ms: int, ask: Asking) -> tuple["Joining", int | None]:
        """Leave the group at each broker; when the next step is due, None after the last one."""
        leaves = {broker: self.leaves.get(broker, ()) for broker in self.due}
        open_brokers = [broker for broker, sent in leaves.items() if not self._is_over(sent, now_ms)]
        for broker in open_brokers:
            sent = leaves[broker]
            if not sent or sent[-1].outcome(now_ms) is not None:
                leaves[broker] = (*sent, ask(Ask(broker, "Leave", _LEAVE_MS, (self.group, self.process))))
        due_ms = min((leaves[broker][-1].due_ms(now_ms) for broker in open_brokers), default=NEVER)
        return replace(self, leaves=leaves), due_ms if open_brokers else None

    @staticmethod
    def _is_over(sent: tuple[Sent, ...], now_ms: int) -> bool:
        if not sent or sent[-1].outcome(now_ms) is None:
            return False
        return sent[-1].is_answered(now_ms) or len(sent) == _LEAVES_MAX
