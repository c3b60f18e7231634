"""What the README and the docs show runs as it stands there."""

import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("page", "number"),
    [("README.md", 2), ("docs/models.md", 6), ("docs/tall.md", 1)],
    ids=lambda x: str(x),
)
def test_the_code_on_a_page_runs(page, number):
    text = (ROOT / page).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == number
    names: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries, and verdicts of tiny runs
        for block in blocks:
            exec(compile(block, page, "exec"), names)
    assert names["posterior"].num_evaluations > 0
