"""What README and docs show runs as it stands there, and the site builds."""

import dataclasses
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import vhmc
import vhmc.lab.baselines
from tests.statistical.test_mutations import MUTATIONS
from vhmc.sampler.verdict import HIGH, LOW, ExactStatistics, Statistics

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ALL = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "gallery/README.md")),
    *sorted(DOCS.glob("*.md")),
)
"""Every page but the changelog, which has names of the past."""
PAGES = {
    page.relative_to(ROOT).as_posix(): blocks
    for page in ALL
    if (blocks := re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
}
SLOW = "docs/models.md", "docs/tall.md"
"""A cluster, and one model of each kind, which other tests run as well."""


def test_pages_with_code_are_found():
    known = "README.md", "docs/index.md", "docs/models.md", "docs/tall.md"
    assert {*known, "docs/extending.md"} <= set(PAGES)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow) if page in SLOW else page
        for page in PAGES
    ],
)
def test_the_code_on_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for the files that it writes
    names: dict = {"__name__": "a page"}
    if "distributed" in "".join(PAGES[page]):
        # Worker processes import the main part of a script, so it must be one.
        script = tmp_path / "page.py"
        script.write_text("\n\n".join(PAGES[page]))
        subprocess.run([sys.executable, script], check=True, timeout=280)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries, and verdicts of tiny runs
        for block in PAGES[page]:
            exec(compile(block, page, "exec"), names)
    assert names["posterior"].num_evaluations > 0


def test_code_is_marked_as_such():
    for page in ALL:
        # Every second fence closes; those that open without a language are not run.
        parts = re.split(r"^```(.*)\n", page.read_text(), flags=re.M)
        for language, block in zip(parts[1::4], parts[2::4], strict=True):
            is_code = "import " in block or "vhmc." in block
            assert language or not is_code, f"{page.name}: {block}"


def test_every_public_name_is_in_the_reference():
    text = (DOCS / "api.md").read_text()
    ours, rest = text.split("## The paper's algorithm")
    papers, rivals = rest.split("## Methods we compare with")
    name = r"^\.\. auto(?:function|class|data|exception):: ([\w.]+)$"
    shown = {found for found in re.findall(name, ours, re.M) if "." not in found}
    assert shown | {"paper"} == set(vhmc.__all__)
    assert set(re.findall(name, papers, re.M)) == set(vhmc.paper.__all__)
    shown = set(re.findall(name, rivals, re.M))
    assert shown | {"laplace"} == set(vhmc.lab.baselines.__all__)


def test_every_page_is_in_the_index():
    index = (DOCS / "index.md").read_text()
    pages = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    assert all(re.search(rf"^{page}$", index, re.M) for page in pages)


def test_the_index_of_constants_is_that_of_the_code():
    """If not, run `python docs/make_constants.py`."""
    page = runpy.run_path(str(DOCS / "make_constants.py"))["page"]()
    assert (DOCS / "constants.md").read_text() == page


def test_the_index_of_constants_finds_numbers_of_every_kind():
    text = (DOCS / "constants.md").read_text()
    for name in ("HUGE", "LENGTHS", "EASY", "RIDGES", "MAX_BYTES", "HIGH, LOW"):
        assert f"| `{name}` |" in text
    assert "RENAMED" not in text and "NO_DENSITY" not in text


def limits(record):
    """Signs and values of the limits of a record, by name."""
    fields = dataclasses.fields(record)
    found = {field.name: field.metadata.get("limit") for field in fields}
    return {name: limit[:3] for name, limit in found.items() if limit}


def test_the_limits_of_the_verdict_are_those_of_the_code():
    text = (DOCS / "verdict.md").read_text()
    row = r"^\| `(\w+)` \|.*\| ([<>]) ([\d.]+) \| ([<>]) ([\d.]+) \|$"
    signs = {">": HIGH, "<": LOW}
    shown = {
        name: (signs[sign], float(caution), float(bad))
        for name, sign, caution, same, bad in re.findall(row, text, re.M)
        if sign == same
    }
    assert shown == limits(Statistics)
    assert limits(ExactStatistics) == {
        "exact_rhat": (HIGH, 1.1, 1.3),
        "exact_ess": (LOW, 100.0, 20.0),
    }
    assert "(caution above 1.1, bad above 1.3)" in text
    assert "(below 100, below\n20)" in text
    for field in dataclasses.fields(Statistics):
        assert f"`{field.name}`" in text


def test_mutations_are_counted():
    assert f"; {len(MUTATIONS)} in all." in (DOCS / "correctness.md").read_text()


def test_files_named_on_pages_exist():
    for page in ALL:
        for name in re.findall(r"`([\w./-]+/[\w.-]+\.py)`", page.read_text()):
            places = ROOT, ROOT / "src" / "vhmc"
            assert any((place / name).is_file() for place in places), (
                f"{page.name} names {name}"
            )


def anchors(page):
    """Of the headings of a page, as GitHub and MyST make them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_links_between_pages_hold():
    for page in ALL:
        for link, place in re.findall(
            r"\]\(([^)#]*?)(?:#([^)]*))?\)", page.read_text()
        ):
            if link.startswith("http"):
                continue
            aim = page.parent / link if link else page
            assert aim.exists(), f"{page.name} links to {link}"
            assert not place or place in anchors(aim), f"{page.name}: {link}#{place}"


def test_the_site_builds_without_a_warning(tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"),
            *("-b", "html", "-d", tmp_path / "cache", DOCS, tmp_path / "site"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "site" / "api.html").read_text()
    # Arguments are listed, and formulas are formulas.
    assert "<code" in text and "budget" in text
    assert "$" not in re.sub(r"<[^>]*>", "", text.split("<article")[1])
    for page in (tmp_path / "site").glob("*.html"):
        text = page.read_text()
        assert not re.search("<script[^>]*mathjax", text)  # formulas need no network
        left = re.findall(r"<m[a-z]+[^>]*>([^<]*\\[a-zA-Z]+)", text)
        assert left == [], f"{page.name}: not turned into a formula"
