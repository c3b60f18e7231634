"""Every bad argument is refused at the door: one sentence, no evaluation."""

import warnings
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vhmc

# Whatever people pass by mistake where a whole number belongs.
NO_NUMBER = st.one_of(
    st.text(max_size=5),
    st.floats(),
    st.booleans(),
    st.complex_numbers(),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.just(np.zeros((40, 2))),
    st.just(object()),
)
NO_PATH = st.one_of(
    st.integers(), st.floats(), st.booleans(), st.binary(), st.sampled_from(["", "\0"])
)
NO_OLD_RUN = st.one_of(
    st.integers(), st.floats(), st.booleans(), st.lists(st.integers(), max_size=2)
)
BAD = {
    "budget": st.one_of(NO_NUMBER, st.none(), st.integers(max_value=19)),
    "draws": st.one_of(
        NO_NUMBER, st.none(), st.integers(max_value=3), st.integers(10**10)
    ),
    "chains": st.one_of(
        NO_NUMBER, st.none(), st.integers(max_value=0), st.integers(10**10)
    ),
    "correction": st.one_of(NO_NUMBER, st.none(), st.integers()),
    "seed": st.one_of(NO_NUMBER, st.none(), st.integers(max_value=-1)),
    "num_features": st.one_of(NO_NUMBER, st.integers(max_value=-1), st.integers(10**5)),
    "warm_start": NO_OLD_RUN,
    "ledger": NO_PATH,
}
GOOD = {
    "budget": st.integers(20, 10**6),
    "draws": st.integers(4, 10**4),
    "chains": st.integers(1, 100),
    "correction": st.sampled_from(["auto", "none", "importance", "exact"]),
    "seed": st.integers(0, 2**40),
    "num_features": st.one_of(st.none(), st.integers(0, 1000)),
}


class Model:
    """It must not be called."""

    def __init__(self):
        self.calls = 0

    def __call__(self, theta):
        self.calls += 1
        return -0.5 * theta @ theta, -theta


@st.composite
def calls(draw):
    """Arguments of `sample` of which at least one is bad, the others good or not."""
    bad = draw(st.sampled_from(sorted(BAD)))
    options = {bad: draw(BAD[bad])}
    for name in draw(st.sets(st.sampled_from(sorted(GOOD)))) - {bad}:
        options[name] = draw(st.one_of(GOOD[name], BAD[name]))
    return options


def refused(function, allowed=(ValueError,)):
    """Whatever it is called with, it raises one of ours, in one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(allowed) as info:
            function()
    message = str(info.value)
    assert 10 < len(message) < 300, message
    assert "\n" not in message
    return message


@pytest.fixture(scope="module", autouse=True)
def as_a_user_has_it():
    """The run-time checks of the tests would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@settings(max_examples=200, deadline=None)
@given(options=calls())
def test_sample_refuses_before_the_first_call(options, tmp_path_factory):
    model = Model()
    target = vhmc.from_callable(model, 2)
    path = tmp_path_factory.getbasetemp() / "run.vhmc"
    options.setdefault("ledger", path)
    message = refused(lambda: vhmc.sample(target, **options))
    assert model.calls == target.num_evaluations == 0
    assert not path.exists(), "a file for a run that never was"
    # It says which argument it was.
    assert any(name in message for name in options), message


@settings(max_examples=50, deadline=None)
@given(target=st.one_of(NO_NUMBER, st.none(), st.just(Model())))
def test_sample_wants_a_model(target):
    refused(lambda: vhmc.sample(target), (TypeError, ValueError))


SHAPES = st.dictionaries(
    st.text(max_size=3), st.one_of(st.integers(-3, 3), st.just((-1,))), max_size=3
)
BAD_MODEL = {
    "value_and_grad": st.one_of(st.integers(), st.text(), st.none()),
    "dim": st.one_of(NO_NUMBER, st.none(), st.integers(max_value=0)),
    "init": st.one_of(
        st.text(),
        st.floats(),
        st.lists(st.floats(), max_size=1),
        st.lists(st.floats(), min_size=3, max_size=4),
        st.just([np.nan, 0.0]),
        st.just([0.0, np.inf]),
        st.just([1j, 0.0]),
        st.just(object()),
    ),
    "names": st.one_of(
        st.integers(), st.text(), st.just(["a", "a"]), st.just([1, [2]]), SHAPES
    ),
    "constraints": st.one_of(
        st.integers(1),
        st.text(min_size=1),
        st.just({"theta": "positive"}),
        st.just({"no such": vhmc.positive}),
    ),
    "differences": st.one_of(st.text(), st.integers(), st.floats()),
    "step": st.one_of(st.floats(), st.text(), st.integers()),
    "parallel": st.one_of(st.integers(), st.text(), st.just([])),
    "timeout": st.one_of(
        st.text(), st.floats(max_value=0), st.just(np.nan), st.booleans(), st.just([])
    ),
}


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(sorted(BAD_MODEL)), data=st.data())
def test_from_callable_refuses_before_the_first_call(name, data):
    model = Model()
    options = {"value_and_grad": model, "dim": 2} | {name: data.draw(BAD_MODEL[name])}
    refused(lambda: vhmc.from_callable(**options))
    assert model.calls == 0


def test_a_path_may_be_one_of_pathlib(tmp_path):
    model = Model()
    target = vhmc.from_callable(model, 2)
    folder = Path(tmp_path)
    assert "is a folder" in refused(lambda: vhmc.sample(target, ledger=folder))
    assert model.calls == 0
