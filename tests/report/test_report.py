"""The page of a run: what is on it, that nothing breaks it, and a real browser."""

import dataclasses
import html
import re
import shutil

import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from vhmc.report.facts import facts_of, load
from vhmc.report.page import MOST_CARDS, render

NASTY = "<script>alert(1)</script>"
BY_NAME = (
    "names",
    "mean_bounds",
    "sd_bounds",
    "moments",
    "means",
    "errors",
    "ess",
    "rhat",
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def posterior():
    def log_density(p):
        return -0.5 * jnp.sum(p[NASTY] ** 2) + 2 * jnp.log(p["scale"]) - p["scale"]

    target = vhmc.from_jax(
        log_density, {NASTY: np.zeros(25), "scale": 1.0}, {"scale": vhmc.positive}
    )
    return vhmc.sample(target, 400, draws=200, num_features=100, seed=0, progress=False)


@pytest.fixture(scope="module")
def page(posterior, tmp_path_factory):
    return posterior.report(tmp_path_factory.mktemp("report") / "new" / "out.html")


def test_verdict_costs_and_settings_are_on_it(posterior, page):
    text = page.read_text()
    assert f"<strong>{posterior.verdict.status}</strong>" in text
    assert all(reason in text for reason in posterior.verdict.reasons)
    assert f"{posterior.num_evaluations} evaluations" in text
    assert "vhmc.sample(target, 400, " in text and "seed=0" in text
    assert f"<dd>{vhmc.__version__}</dd>" in text
    assert f"training {posterior.costs['training']}" in text


def test_the_table_has_every_number_and_the_worst_known_first(posterior, page):
    rows = re.findall(r'<tr data-name="(.*?)">(.*?)</tr>', page.read_text())
    assert len(rows) == 26
    errors = {html.escape(row.name): row for row in posterior.verdict.parameters}
    off = [max(errors[name][2], errors[name][4]) for name, _ in rows]
    assert off == sorted(off, reverse=True)
    for name, row in rows:
        mean, sd = map(float, re.findall(r"<td>(.*?)</td>", row)[-2:])
        assert mean == pytest.approx(errors[name].mean_bound, abs=0.006)
        assert sd == pytest.approx(100 * errors[name].sd_bound, abs=0.6)
    scale = next(row for name, row in rows if name == "scale")
    shown = float(re.findall(r"<td>(.*?)</td>", scale)[0])
    assert shown == pytest.approx(posterior.draws["scale"].mean(), rel=1e-3)
    assert page.read_text().count('class="card"') == MOST_CARDS


def test_it_needs_no_network_and_takes_no_markup(page):
    text = page.read_text()
    assert "http://" not in re.sub(r'src="data:[^"]*"', "", text)
    assert "https://" not in re.sub(r'src="data:[^"]*"', "", text)
    assert NASTY not in text
    assert text.count("<script>") == 1  # our own


def test_every_picture_has_words(page):
    images = re.findall(r"<img [^>]*>", page.read_text())
    assert len(images) > MOST_CARDS
    assert all(len(re.search(r'alt="([^"]*)"', image)[1]) > 10 for image in images)


def test_what_is_saved_makes_the_same_page(posterior, page, tmp_path):
    path = posterior.save(tmp_path / "run.npz")
    again = load(path)
    np.testing.assert_array_equal(again.values, facts_of(posterior).values)
    assert render(again) == page.read_text()


def test_draws_of_the_papers_algorithm_have_a_page_too(tmp_path):
    target = vhmc.from_jax(lambda x: -0.5 * x @ x, np.zeros(1))
    method = vhmc.paper.VHMC(num_features=20, num_train=100, ridge=0.1)
    posterior = vhmc.paper.sample_paper(target, method, draws=100, chains=2, seed=0)
    text = posterior.report(tmp_path / "out.html").read_text()
    assert "<strong>unchecked</strong>" in text and "Pareto" not in text


def test_something_else_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    path.write_text("hello")
    with pytest.raises(ValueError, match="is not a run that vhmc saved"):
        load(path)
    with path.open("wb") as stream:
        np.savez(stream, values=np.zeros(3))
    with pytest.raises(ValueError, match="is not a run that this version"):
        load(path)


def test_a_posterior_in_a_notebook(posterior):
    card = posterior._repr_html_()
    assert NASTY not in card and "<table" in card
    assert posterior.verdict.status in posterior.verdict._repr_html_()


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        # Containers have no user namespaces; the page is our own.
        made = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        yield made
        made.close()


@pytest.mark.parametrize(
    ("width", "scheme"), [(1100, "light"), (1100, "dark"), (390, "light")]
)
def test_in_a_browser(browser, page, width, scheme):
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme
    )
    tab = context.new_page()
    errors, asked = [], []
    tab.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.as_uri())
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    # Nothing sticks out to the side, on a phone neither.
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.locator("tbody tr:visible").count() == 26
    tab.get_by_label("Search by name").fill("SCALE")
    assert tab.locator("tbody tr:visible").count() == 1
    cards = tab.locator('.card[data-name="scale"]').count()
    assert tab.locator(".card:visible").count() == cards
    assert tab.locator("#count").inner_text() == "1 found"
    worst = tab.locator("tbody tr").first.get_attribute("data-name")
    tab.get_by_label("Search by name").fill(worst)
    assert tab.locator(".card:visible").count() >= 1
    broken = "[...document.images].filter(i => !i.complete || !i.naturalWidth).length"
    assert tab.evaluate(broken) == 0
    dark = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(13, 17, 23)") == (scheme == "dark")
    assert errors == []
    context.close()


def test_on_paper(browser, page, tmp_path):
    context = browser.new_context()
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.emulate_media(media="print", color_scheme="dark")
    assert not tab.get_by_label("Search by name").is_visible()
    shade = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert shade == "rgb(255, 255, 255)"
    context.close()


def test_draws_that_are_not_finite_or_do_not_move_have_a_page_too(posterior):
    facts = facts_of(posterior)
    values = facts.values.copy()
    values[0, 0, 0], values[:, :, 1], values[:, :, 2] = np.nan, 1.5, np.inf
    values[0, :50, 3] = -np.inf
    few = {name: getattr(facts, name)[:5] for name in BY_NAME}
    with np.errstate(all="ignore"):
        assert "<strong>" in render(facts._replace(values=values[:, :, :5], **few))


def test_resampled_draws_are_not_counted_as_new(posterior):
    again = dataclasses.replace(posterior, correction="importance")
    most = 1 / np.sum(posterior.check.weights**2)
    assert again.max_ess == pytest.approx(most)
    assert facts_of(again).ess.max() <= most < facts_of(posterior).ess.min()
    assert again.summary()["ess_bulk"].max() <= most


def test_exact_draws_are_not_called_useless(posterior):
    verdict = posterior.verdict._replace(status="bad")
    changed = dataclasses.replace(posterior, correction="exact", verdict=verdict)
    text = render(facts_of(changed))
    assert "Do not use these draws" not in text and "whatever the surrogate" in text
