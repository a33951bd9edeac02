"""Name the faults, rules and judges of a campaign in words.

Documents and tables keep the identifiers (`rule_fail_write`). People read the words (`failing writes`).
"""

from collections.abc import Iterable

__all__ = ["shown_name", "shown_names"]

_NAMES = {
    "kill": "process kills",
    "power": "power losses",
    "lost_name": "lost names of files",
    "lost_page": "lost pages",
    "lost_size": "lost sizes of files",
    "older_version": "older versions of pages",
    "torn_page": "torn pages",
    "crash_in_recovery": "crashes during recovery",
    "clock_back": "clock set back",
    "clock_forward": "clock set forward",
    "mode_async": "asynchronous stores",
    "mode_sync": "synchronous stores",
    "second_opener": "second openers refused",
    "flip": "flipped bits",
    "misdirect": "misdirected bytes",
    "misdirect_page": "misdirected pages",
    "missing": "missing files",
    "stale_page": "stale pages",
    "truncate": "truncated files",
    "zero_page": "zeroed pages",
    "harmed_checkpoint": "damaged checkpoints",
    "harmed_derived-floor": "damaged floors of queues",
    "harmed_floor": "damaged floors of the log",
    "harmed_index": "damaged index files",
    "harmed_marker": "damaged abort markers",
    "derived_lost": "lost queue or index files",
    "derived_misdirected": "misdirected queue or index bytes",
    "derived_resized": "resized queue or index files",
    "derived_stale": "stale queue or index files",
    "derived_stray": "stray queue or index files",
    "derived_torn": "torn queue or index files",
    "derived_zeroed": "zeroed queue or index files",
    "index_made_good": "index rebuilt",
    "queues_made_good": "queues rebuilt",
    "delay_offsets_garbage": "garbage in delay offsets",
    "delay_offsets_lost": "lost delay offsets",
    "delayed_in_log": "delayed messages in the log",
    "delays_saved": "delay offsets saved",
    "delivered_after_recovery": "delayed messages delivered after recovery",
    "progress_being_saved": "crashes while consumer offsets are saved",
    "progress_corrected": "consumer offsets corrected",
    "progress_file_both": "damaged offset file and backup",
    "progress_file_empty": "empty offset files",
    "progress_file_lost": "lost offset files",
    "progress_file_misdirected": "misdirected offset files",
    "progress_file_stale": "stale offset files",
    "progress_file_torn": "torn offset files",
    "progress_saved": "consumer offsets saved",
    "rule_clean_for_room": "cleaning for disk space",
    "rule_clean_on_request": "cleaning on request",
    "rule_close": "clean closes",
    "rule_commit_offset": "commits of consumer offsets",
    "rule_delete_topics": "deleting topics",
    "rule_deliver": "delivering delayed messages",
    "rule_dispatch": "dispatching to queues and index",
    "rule_fail_sync": "failing syncs",
    "rule_fail_write": "failing writes",
    "rule_flush": "flushes",
    "rule_get": "reads by offset",
    "rule_get_message": "pulls from a queue",
    "rule_hold_buffer": "holding read buffers",
    "rule_offset_by_time": "queries by time",
    "rule_put": "puts",
    "rule_put_batch": "puts of batches",
    "rule_query_key": "queries by key",
    "rule_query_offsets": "queries of queue bounds",
    "rule_refuse_file": "failing creation of files",
    "rule_release_buffer": "releasing read buffers",
    "rule_save_progress": "saving consumer offsets",
    "rule_step": "background steps",
    "judge_begins_where_it_may": "check: log begins where deletion ended",
    "judge_checkpoint_is_not_ahead": "check: checkpoint not ahead of the log",
    "judge_checkpoint_is_not_ahead_of_queues": "check: checkpoint not ahead of the queues",
    "judge_covers_the_floor": "check: nothing durable lost",
    "judge_delivery_goes_on_where_it_was_saved": "check: delivery continues at the saved offset",
    "judge_extensions_hold_the_log": "check: queue extensions equal the log",
    "judge_files_are_old_or_new": "check: saved files old or new, not torn",
    "judge_floors_say_what_is_durable": "check: floors cover only durable bytes",
    "judge_index_holds_the_log": "check: index equals the log",
    "judge_is_a_prefix": "check: log is a prefix of the puts",
    "judge_keys_are_found": "check: queries find every key",
    "judge_nobody_is_led_past": "check: no consumer skips a message",
    "judge_nothing_behind_the_end": "check: nothing after the end of the log",
    "judge_nothing_delayed_is_left_out": "check: no delayed message left out",
    "judge_opens_for_writing": "check: store opens for writing",
    "judge_queues_are_read_in_order": "check: queues read in order",
    "judge_queues_have_their_bounds": "check: bounds of queues",
    "judge_queues_hold_the_log": "check: queues equal the log",
    "judge_recovered_is_durable": "check: recovered bytes are durable",
    "judge_small_files_are_whole": "check: small files whole",
    "judge_times_are_found": "check: queries by time",
    "judge_watermarks_in_order": "check: watermarks in order",
}
_PREFIXES = {"aimed_": "I/O fault: ", "judge_": "check: ", "rule_": "", "mode_": "", "derived_": "queue or index: "}


def shown_name(name: str) -> str:
    """Return the words for an identifier; an unknown one loses its prefix and its underscores."""
    if name in _NAMES:
        return _NAMES[name]
    for prefix, words in _PREFIXES.items():
        if name.startswith(prefix):
            return words + name.removeprefix(prefix).replace("_", " ")
    return name.replace("_", " ")


def shown_names(names: Iterable[str]) -> list[str]:
    """Return the words for several identifiers."""
    return [shown_name(name) for name in names]
