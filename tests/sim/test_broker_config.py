"""Test that broker settings become policies by RocketMQ's rules; unknown ones are refused."""

import pytest

from tornpage.impl.config.policy import AllocationPolicy, CommitPolicy, FlushDiskType, FlushPolicy, WarmUp
from tornpage.sim.broker_config import KNOWN, BadBrokerConfig, parse_properties, policies_of
from tornpage.sim.scenario import Pool


def test_no_setting_is_the_default_of_the_store() -> None:
    found = policies_of({})
    assert found.flush == FlushPolicy(FlushDiskType.ASYNC_FLUSH)
    assert found.allocation == AllocationPolicy()
    assert (found.pool, found.file_bytes, found.notes) == (None, 1 << 30, ())


def test_every_setting_that_has_an_effect_is_read() -> None:
    found = policies_of(
        parse_properties(
            "flushIntervalCommitLog=7\nflushCommitLogLeastPages=8\nflushCommitLogThoroughInterval=9\n"
            "flushCommitLogTimed=false\nsyncFlushTimeout=10\ntransientStorePoolEnable=TRUE\ntransientStorePoolSize=11\n"
            "commitIntervalCommitLog=12\ncommitCommitLogLeastPages=13\ncommitCommitLogThoroughInterval=14\n"
            "fastFailIfNoBufferInStorePool=true\nwarmMapedFileEnable=true\nflushLeastPagesWhenWarmMapedFile=15\n"
            "mappedFileSizeCommitLog=16"
        )
    )
    assert found.flush == FlushPolicy(FlushDiskType.ASYNC_FLUSH, 7, 8, 9, False, 10)
    assert found.pool == Pool(11, CommitPolicy(12, 13, 14), True)
    assert found.allocation == AllocationPolicy(1, WarmUp.TOUCH_AND_FORCE, 15)
    assert found.file_bytes == 16


@pytest.mark.parametrize("other", [{"flushDiskType": "SYNC_FLUSH"}, {"brokerRole": "SLAVE"}])
def test_a_pool_without_effect_is_left_out_and_told(other: dict[str, str]) -> None:
    found = policies_of({"transientStorePoolEnable": "true", "transientStorePoolSize": "0", **other})
    assert found.pool is None
    assert any("a pool is for masters with ASYNC_FLUSH" in note for note in found.notes)


def test_a_file_is_read_as_properties_are() -> None:
    text = "# comment\n! another\n\n flushDiskType : SYNC_FLUSH \nflushDiskType=ASYNC_FLUSH\nnamesrvAddr=a:1;b:2\n"
    assert parse_properties(text) == {"flushDiskType": "ASYNC_FLUSH", "namesrvAddr": "a:1;b:2"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("flushDiskTypo=SYNC_FLUSH", "did you mean flushDiskType"),
        ("zzzzzz=1", "unknown broker setting 'zzzzzz'$"),
        ("flushDiskType=NEVER", "has to be ASYNC_FLUSH or SYNC_FLUSH"),
        ("flushCommitLogTimed=1", "flushCommitLogTimed is '1'; it has to be true or false"),
        ("flushIntervalCommitLog=soon", "flushIntervalCommitLog is 'soon'; it has to be a whole number"),
        ("flushIntervalCommitLog=0", "flush_interval_commit_log is 0"),
        ("transientStorePoolEnable=true\ntransientStorePoolSize=0", "a pool of 0 buffers is impossible"),
        ("brokerName=a\nnonsense", "line 2 is no name=value: 'nonsense'"),
    ],
)
def test_what_cannot_be_simulated_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(BadBrokerConfig, match=sentence):
        policies_of(parse_properties(text))


def test_known_names_are_plain() -> None:
    assert all(name.isalnum() and name[0].islower() for name in KNOWN)
