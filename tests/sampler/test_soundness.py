"""Wrong models are named: their gradients, noise, digits, and missing mass."""

import numpy as np
import pytest

import vhmc
from vhmc.evaluation.evaluator import EvaluationLog, Evaluator
from vhmc.evaluation.target import Evaluations
from vhmc.models.from_callable import from_callable
from vhmc.sampler.descents import Evaluated
from vhmc.sampler.soundness.gradient import Group, find_fault, is_rough
from vhmc.sampler.soundness.inspection import Inspection
from vhmc.sampler.soundness.mass import flat_directions, without_mass
from vhmc.sampler.soundness.noise import is_late, repeat, rounding
from vhmc.sampler.soundness.secant import compare, downhill, secant

NAMES = "abcde"
SCALES = np.array([1e-6, 1.0, 300.0, 1.0, 2.0])
BASE = SCALES * np.array([0.7, -1.2, 0.4, 1.5, -0.3])


def right(theta):
    """A log density with skewness, whose parameters have very different units."""
    x = theta / SCALES
    value = -0.5 * x @ x - np.exp(0.3 * x).sum()
    return value, (-x - 0.3 * np.exp(0.3 * x)) / SCALES


def target_of(change=lambda grad: grad, shift=lambda theta: 0.0):
    def model(theta):
        value, grad = right(theta)
        return value + shift(theta), change(grad.copy())

    return from_callable(model, 5, names=list(NAMES))


def times(place, factor):
    def change(grad):
        grad[place] *= factor
        return grad

    return change


def evaluate_of(target):
    def evaluate(thetas, phase):
        return target.evaluate(thetas)

    return evaluate


def base_of(target):
    answer = target.evaluate(BASE[None])
    return Evaluated(BASE, float(answer.energy[0]), answer.grad[0])


def said(target):
    base, evaluate = base_of(target), evaluate_of(target)
    compared = compare(evaluate, base, 4)
    if not compared.is_wrong:
        return ""
    fault = find_fault(evaluate, base, compared.step, NAMES, 5)
    return fault.sentence if fault else ""


def test_a_right_gradient_costs_one_evaluation():
    target = target_of()
    base = base_of(target)
    before = target.num_evaluations
    assert not compare(evaluate_of(target), base, 4).is_wrong
    assert target.num_evaluations == before + 1


def test_energies_of_a_gaussian_change_as_the_gradients_say():
    a, b = np.array([1.0, 2.0]), np.array([-3.0, 0.5])
    found = secant(Evaluated(a, 0.5 * a @ a, a), Evaluated(b, 0.5 * b @ b, b))
    assert abs(found.error) < 1e-14


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda grad: 1.01 * grad, "0.9901 times"),
        (lambda grad: -grad, "wrong sign in all"),
        (times(1, -1.0), "for b it has the wrong sign"),
        (times(2, 0.0), "for c it is zero"),
        (times(3, 1.01), "for d the log density changes 0.9901 times"),
        (lambda grad: grad[[0, 3, 2, 1, 4]], "of b is given for d, that of d is"),
    ],
)
def test_a_wrong_gradient_is_named_with_its_parameter(change, sentence):
    assert sentence in said(target_of(change))


def test_a_jacobian_left_out_is_named():
    assert "log-Jacobian" in said(target_of(shift=lambda theta: theta[4]))


def test_a_step_changes_the_energy_alike_in_all_units():
    base = base_of(target_of())
    changes = np.abs(downhill(base) * base.grad)
    # The gradient of the first parameter is a million times as large.
    assert changes.max() / changes[changes > 0].min() < 1e3


def test_a_wrong_sign_ends_a_run_early_and_nothing_is_lost():
    target = from_callable(
        lambda x: (-0.5 * x @ x + x.sum(), times(1, -1.0)(1 - x)),
        5,
        names=list(NAMES),
    )
    with pytest.raises(vhmc.RunFailure, match="for b it has the wrong") as caught:
        vhmc.sample(target, budget=400, progress=False)
    assert target.num_evaluations < 20
    log = caught.value.evaluation_log
    assert log is not None and len(log.theta) == target.num_evaluations


def test_noise_is_measured():
    """Of 4 answers with an sd of one; its estimate is in 0.05 to 3 in all but 1e-4."""
    rng = np.random.default_rng(0)
    target = target_of(shift=lambda theta: rng.normal())
    repeated = repeat(evaluate_of(target), base_of(target), 4)
    assert 0.05 < repeated.value < 3
    assert "log density is noisy" in repeated.concerns()[0][1]


def test_a_gradient_of_the_evaluation_before_is_late():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(40, 3))
    energy = 0.5 * np.sum(theta**2, axis=1)
    known, words = np.ones(40, dtype=bool), np.array([""] * 40)
    log = EvaluationLog(theta, energy, theta, known, words, words)
    assert not is_late(log)
    assert is_late(log._replace(grad=np.roll(theta, 1, axis=0)))


def test_few_digits_are_named():
    rng = np.random.default_rng(0)
    energies = rng.normal(size=50)
    assert rounding(energies + 1e12) is None
    for changed, word in (
        (energies + 1e17, "near 1e+17"),
        ((energies + 1e7).astype(np.float32).astype(float), "32 bits"),
        (np.round(3 * energies), "integers"),
        (np.zeros(50), "the same"),
    ):
        found = rounding(changed)
        assert found is not None and word in found[1]


def test_an_unidentified_sum_is_named():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(20, 3))
    slope = 4e3 * (theta[:, 0] + theta[:, 1])
    flat = flat_directions(np.stack([slope, slope, theta[:, 2]], axis=1))
    assert len(flat) == 1
    np.testing.assert_allclose(flat[0, 0], -flat[0, 1])

    def evaluate(thetas, phase):
        energy = 2e3 * (thetas[:, 0] + thetas[:, 1]) ** 2 + 0.5 * thetas[:, 2] ** 2
        return Evaluations(energy, thetas, np.array([""] * len(thetas)))

    sentence = without_mass(evaluate, (np.zeros(3), 0.0), flat, "abc")
    assert sentence is not None and "if a, b move together" in sentence


@pytest.mark.parametrize(
    ("tail", "is_proper"),
    [(0.4, False), (0.0, False), (1.0, True), (2.5, True)],
)
def test_tails_without_an_integral_are_found(tail, is_proper):
    r"""A density that falls like $|x|^{-2 k}$ has one if $k > 1/2$."""

    def evaluate(thetas, phase):
        energy = tail * np.log1p(thetas[:, 0] ** 2)
        return Evaluations(energy, thetas, np.array([""] * len(thetas)))

    found = without_mass(evaluate, (np.zeros(1), 0.0), np.eye(1), "a")
    assert (found is None) == is_proper


def test_a_kink_at_the_start_is_no_fault():
    target = from_callable(lambda t: (-np.abs(t).sum(), -np.sign(t)), 3)
    inspection = Inspection(Evaluator(target, 400), NAMES)
    inspection.at_start()
    assert not inspection.concerns


def test_a_kink_at_the_end_of_a_descent_is_no_fault():
    """The slopes at both sides of the lowest point cancel each other."""
    target = from_callable(lambda t: (-np.abs(t).sum(), -np.sign(t)), 3)
    for theta in (np.zeros(3), np.full(3, 1e-9)):
        answer = target.evaluate(theta[None])
        base = Evaluated(theta, float(answer.energy[0]), answer.grad[0])
        assert not compare(evaluate_of(target), base, 4).is_wrong


@pytest.mark.parametrize(("wave", "expected"), [(0.0, False), (1e-5, True)])
def test_a_long_step_that_happens_to_fit_is_not_rough(wave, expected):
    r"""Of $\theta^3$ the trapezoid rule is off by a half of the cubed step.

    Where that cancels the error of a gradient that is 1 % too large, one long step
    alone looks right.
    """
    step = 1e-4
    curve = -0.0194  # on a step of one

    def model(theta):
        value = theta[0] + curve * theta[0] ** 3
        value += wave * np.sin(theta[0] / (10 * wave)) if wave else 0.0
        factor = 1.0 if wave else 1.01
        return -value, -factor * (1 + 3 * curve * theta**2)

    evaluate = evaluate_of(from_callable(model, 1))
    answer = evaluate(np.zeros((1, 1)), "")
    base = Evaluated(np.zeros(1), float(answer.energy[0]), answer.grad[0])
    ends = evaluate(np.array([[step], [1.0]]), "")
    short, long = (
        secant(base, Evaluated(np.array([x]), float(e), g))
        for x, e, g in zip((step, 1.0), ends.energy, ends.grad, strict=True)
    )
    assert abs(short.relative) > 2 * abs(long.relative), "one step would do"
    group = Group(np.zeros(1, dtype=int), np.array([step]), short)
    assert is_rough(evaluate, base, group) == expected
