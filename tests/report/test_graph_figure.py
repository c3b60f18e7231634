"""The graph in the report: there if it tells something, for few and many parameters."""

import dataclasses
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import vhmc
from vhmc.report.facts import facts_of, load, structure_of
from vhmc.report.graph_figure import drawable, in_words, matrix, parts
from vhmc.report.page import render
from vhmc.structure.record import Structure
from vhmc.structure.shapes import roots_of, shapes_of


def star(number, name="theta"):
    """A hub, a global, and groups of one parameter."""
    dim = number + 2
    links = sp.eye(dim, dtype=bool, format="lil")
    links[0] = links[1] = links[:, 0] = links[:, 1] = True
    labels = "tau", "mu", *(f"{name}[{i}]" for i in range(number))
    return Structure(labels, sp.csr_matrix(links), "traced program", (0,))


@pytest.fixture(scope="module")
def posterior():
    def log_density(p):
        return -0.5 * jnp.sum((p["theta"] - p["mu"]) ** 2) - p["mu"] ** 2

    target = vhmc.from_jax(log_density, {"mu": 0.0, "theta": np.zeros(4)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a small budget gives a bad verdict
        return vhmc.sample(target, 60, draws=20, num_features=0, progress=False)


def test_the_page_shows_the_graph_and_a_saved_run_too(posterior, tmp_path):
    facts = facts_of(posterior)
    assert structure_of(facts).describe() == posterior.structure.describe()
    text = render(facts)
    assert "Drawing of the graph: 4 of 10 pairs of parameters are linked" in text
    assert "Matrix of the linked pairs" in text
    again = load(posterior.save(tmp_path / "run.npz"))
    assert render(again) == text
    assert (structure_of(again).graph != posterior.structure.graph).nnz == 0


def test_no_picture_where_there_is_nothing_to_be_seen(posterior):
    dim = posterior.unconstrained.shape[-1]
    labels = posterior.structure.labels
    full = sp.csr_matrix(np.ones((dim, dim), dtype=bool))
    for structure in (Structure(labels), Structure(labels, full, "assumed")):
        changed = dataclasses.replace(posterior, structure=structure)
        text = render(facts_of(changed))
        assert structure.describe() in text
        assert "Drawing of the graph" not in text


@pytest.mark.parametrize("number", [3, 40, 1500])
def test_pictures_stay_small(number):
    structure = star(number, name="<b>$x$</b>")
    for drawn in (parts(structure), matrix(structure)):
        assert drawn.source.startswith("data:image/")
        assert len(drawn.source) < 100_000


def test_words_of_the_blocks():
    structure = star(8)
    (shape,) = shapes_of(structure, roots_of(structure))
    assert in_words(shape) == "8 blocks of 1 parameter"
    chain = (
        sp.diags([1.0, 1.0, 1.0], [-1, 0, 1], shape=(1000, 1000)).astype(bool).tocsr()
    )
    path = Structure(tuple(f"x[{i}]" for i in range(1000)), chain, "given")
    (shape,) = shapes_of(path, [])
    assert in_words(shape) == "1 block of 1,000 parameters, 999 of 499,500 pairs linked"
    assert drawable(path) is path and len(parts(path).source) < 100_000


def test_the_card_of_a_notebook_has_the_structure(posterior):
    assert posterior.structure.describe() in posterior._repr_html_()
