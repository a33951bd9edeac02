"""Test the exact figures of each law against its draws and numerical integration."""

import numpy as np
import pytest

from tornpage.sim.distributions import Constant, Distribution, Exponential, LogNormal
from tornpage.sim.results.analytic import GroupCommitLaw, replications
from tornpage.sim.streams import Draws, stream

US = 1_000
LAWS = [
    Constant(75 * US),
    Exponential(75.0 * US),
    LogNormal.from_quantiles(p50_ns=75_000, p99_ns=111_000),
    LogNormal.from_moments(mean_ns=700_000, deviation_ns=240_000),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_have_the_moments_of_the_law(law: Distribution) -> None:
    draws = [law.draw(stream(seed, "law"), 20_000).astype(float) for seed in range(16)]
    rates = (0.1 / law.mean_ns, 1 / law.mean_ns, 5 / law.mean_ns)
    pairs = [
        (law.mean_ns, [float(sample.mean()) for sample in draws]),
        (law.second_moment_ns2, [float((sample**2).mean()) for sample in draws]),
        *((law.laplace(rate), [float(np.exp(-rate * sample).mean()) for sample in draws]) for rate in rates),
        *(
            (float(law.cdf(np.array([at]))[0]), [float((sample <= at).mean()) for sample in draws])
            for at in (0.6 * law.mean_ns, law.mean_ns, 1.7 * law.mean_ns)
        ),
    ]
    for exact, samples in pairs:
        found = replications(samples)
        assert found.mean == pytest.approx(exact, rel=1e-9) or abs(found.errors_from(exact)) < 4


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_residual_is_the_integral_of_what_lasts_longer(law: Distribution) -> None:
    grid = np.linspace(0, 8 * law.mean_ns, 400_001)
    lasts = 1 - law.cdf(grid)
    step = float(grid[1])
    integral = np.concatenate(([0.0], np.cumsum((lasts[1:] + lasts[:-1]) / 2) * step)) / law.mean_ns
    assert np.abs(law.residual_cdf(grid) - integral).max() < 2 * step / law.mean_ns


@pytest.mark.parametrize("law", LAWS[1:], ids=str)
def test_quantile_undoes_cdf(law: Distribution) -> None:
    shares = np.array([0.001, 0.1, 0.5, 0.99, 0.9999])
    assert law.cdf(law.quantile(shares)) == pytest.approx(shares, abs=1e-9)


def test_log_normal_keeps_what_it_was_made_from() -> None:
    law = LogNormal.from_quantiles(p50_ns=75_000, p99_ns=111_000)
    assert law.quantile(np.array([0.5, 0.99])) == pytest.approx([75_000, 111_000])
    law = LogNormal.from_moments(mean_ns=700_000, deviation_ns=240_000)
    assert law.mean_ns == pytest.approx(700_000)
    assert law.second_moment_ns2 - law.mean_ns**2 == pytest.approx(240_000**2)


def test_group_commit_law_has_the_closed_forms_of_the_two_simple_syncs() -> None:
    at = np.linspace(0.0, 4_000_000, 401)
    law = GroupCommitLaw(1e-6, Exponential(1e6))
    assert law.cdf(at) == pytest.approx(1 - np.exp(-at / 1e6) * (1 + law.busy_share * at / 1e6), abs=2e-4)
    law = GroupCommitLaw(1e-6, Constant(1_000_000))
    busy = law.busy_share
    atom_then_uniform = np.where(at < 1e6, 0.0, (1 - busy) + busy * np.clip(at / 1e6 - 1, 0, 1))
    assert law.cdf(at) == pytest.approx(atom_then_uniform, abs=1e-12)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_group_commit_law_has_its_limits(law: Distribution) -> None:
    lone, crowded = GroupCommitLaw(1e-15, law), GroupCommitLaw(1.0, law)
    assert lone.mean_ns == pytest.approx(law.mean_ns, rel=1e-6)
    assert lone.mean_batch == pytest.approx(1, rel=1e-6)
    variation = law.second_moment_ns2 / law.mean_ns**2 - 1
    assert crowded.mean_ns == pytest.approx(law.mean_ns * (1 + (1 + variation) / 2), rel=1e-6)


@pytest.mark.parametrize(
    "wrong", [lambda: Constant(-1), lambda: Exponential(0.0), lambda: LogNormal(1.0, float("nan"))]
)
def test_impossible_laws_are_refused(wrong: "type[Constant]") -> None:
    with pytest.raises(ValueError, match="duration"):
        wrong()  # type: ignore[call-arg]


def test_one_by_one_and_many_at_once_are_the_same_draws() -> None:
    law = Exponential(1e6)
    singly, together = Draws(law, stream(1, "x")), Draws(law, stream(1, "x"))
    assert [singly.next() for _ in range(3000)] == together.take(3000).tolist()


def test_streams_differ_by_name_and_seed_and_by_nothing_else() -> None:
    first = stream(1, "arrivals").random(4).tolist()
    assert stream(1, "arrivals").random(4).tolist() == first
    assert stream(1, "arrivals 1").random(4).tolist() != first
    assert stream(1, "think 1").random(4).tolist() != stream(1, "think 2").random(4).tolist()
    assert stream(2, "arrivals").random(4).tolist() != first
