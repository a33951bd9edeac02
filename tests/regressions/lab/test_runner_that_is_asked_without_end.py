"""The reference of a runner of services had no end if every step asks for another one.

Symptom: one of about a thousand `try_functions` took memory until the system killed `explore crashes`.
Cause: the drawn steps of a runner begin again. The runner got a last one after some number, and the reference did not.
Fix: the reference takes its steps from the same function.
"""

from tornpage.properties.lockstep.parts.services import _STEPS_MAX, _expected, _Step


def test_a_runner_whose_steps_ask_for_others_ends() -> None:
    trace = _expected([_Step(0, 0, None, is_asked=True)], [(5, "stop")], 0, None, 0)
    assert len(trace) == _STEPS_MAX + 2
    assert trace[-1] == ("join",)
