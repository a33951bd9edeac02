"""Test hashes of Java strings and of index keys: known values of `String.hashCode`."""

import pytest

from tornpage.impl.message.key_hash import java_hash, key_hash


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("a", 97),
        ("Aa", 2112),
        ("BB", 2112),
        ("AaAa", 2031744),
        ("TagA", 2598919),
        ("hello world", 1794106052),
        ("polygenelubricants", -(2**31)),
        ("\xff", 255),
        ("ÿa", 31 * 255 + 97),
        ("€", 0x20AC),
        ("\U0001f600", 31 * 0xD83D + 0xDE00),
        ("\ud800", 0xD800),
        ("\ufeff", 0xFEFF),
        ("é" * 40, sum(0xE9 * 31**place for place in range(40)) % 2**32 - 2**32),
    ],
)
def test_java_hash_is_that_of_java(text: str, code: int) -> None:
    assert (java_hash(text) - code) % 2**32 == 0
    assert -(2**31) <= java_hash(text) < 2**31


def test_key_hash_covers_topic_sign_and_key() -> None:
    assert key_hash("A", "a") == abs(java_hash("A#a"))
    assert key_hash("A", "a") != key_hash("Aa", "")
    assert key_hash("Thème", "clé") == key_hash("Thème".encode(), "clé")


def test_key_hash_is_never_negative() -> None:
    negative = next(key for key in map(str, range(1000)) if java_hash(f"Topic#{key}") < 0)
    assert key_hash("Topic", negative) == -java_hash(f"Topic#{negative}")


def test_key_hash_without_an_absolute_value_is_zero() -> None:
    assert java_hash("TopicTest#EXw566xxgt") == -(2**31)
    assert key_hash("TopicTest", "EXw566xxgt") == 0


def test_text_that_is_no_utf_8_is_read_as_dispatch_reads_it() -> None:
    assert key_hash(b"T\xff", "k") == key_hash("T�", "k")
