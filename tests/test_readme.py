"""What the README shows runs as it stands there."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_code_in_the_readme_runs():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(blocks) == 2
    names: dict = {}
    for block in blocks:
        exec(compile(block, README.name, "exec"), names)
    assert names["posterior"].num_evaluations == names["target"].num_evaluations
