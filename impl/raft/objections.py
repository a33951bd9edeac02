"""Find messages that no correct member sends to this one now.

Their frames are right, but their values contradict the log, the term or the role of this member. To take such a message
would end the member, or remove entries that are committed. So its link is refused instead (impl/raft/peers.py).
"""

from tornpage.impl.raft.entry_codec import BLANK_BYTES_MIN, HEADER_BYTES
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.messages import AppendAnswer, AppendEntries, Message, RequestVote

__all__ = ["objection"]


def objection(member: RaftMember, source: int, message: Message, *, data_file_bytes: int) -> str:
    """Return why a message is impossible, or an empty text.

    1. A candidate has a term above that of its last entry.
    2. A term has one leader.
    3. An entry fits into a data file.
    4. A leader has each entry that is committed here.
    5. An answer to this leader counts entries and reads of this leader only.
    """
    match message:
        case RequestVote(term, last_term, end):
            if last_term >= term or (last_term and not end):
                return f"a candidate of term {term} has {end} entries, the last one of term {last_term}"
        case AppendEntries() if message.term >= member.term:
            return _of_entries(member, source, message, data_file_bytes)
        case AppendAnswer(term, matches, end, round_) if member.role == "leader" and term == member.term:
            if matches and end > member.log.end:
                return f"{end} entries are confirmed, and the leader has {member.log.end}"
            if round_ > member.round:
                return f"read {round_} is confirmed, and the leader has begun {member.round}"
    return ""


def _of_entries(member: RaftMember, source: int, sent: AppendEntries, data_file_bytes: int) -> str:
    if sent.term == member.term and member.leader not in (None, source):
        return f"n{source} sends entries as the leader of term {sent.term}, which n{member.leader} leads"
    body_bytes_max = data_file_bytes - HEADER_BYTES - BLANK_BYTES_MIN
    longest = max((len(entry.body) for entry in sent.entries), default=0)
    if longest > body_bytes_max:
        return f"an entry has a body of {longest} bytes, and a data file takes {body_bytes_max}"
    begin, log = sent.begin, member.log
    end = min(member.commit, begin + len(sent.entries))
    for place, term in (
        (begin - 1, sent.previous_term),
        *((at, sent.entries[at - begin].term) for at in range(begin, end)),
    ):
        if 0 <= place < member.commit and log.term_at(place) != term:
            return f"entry {place} is committed with term {log.term_at(place)}, and n{source} has it with term {term}"
    return ""
