"""Write docs/constants.md, the index of all tuning constants, from the source code.

python docs/make_constants.py
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "src" / "vhmc"
LEFT_OUT = "lab", "cli"
HEAD = """\
# Tuning constants

Every constant of a module that is a number, or a tuple or dict of numbers, with the
text that stands below it in the code. `lab` and `cli` are left out; the limits of the
verdict are on [their own page](verdict.md).

This page is written by `python docs/make_constants.py`. Do not edit it: a test fails if
it differs from the code.
"""


class Constant(NamedTuple):
    """A constant, as it is written, and the text below it."""

    module: str
    name: str
    value: str
    text: str


def page() -> str:
    """The page, as Markdown."""
    parts = [HEAD]
    folders = [PACKAGE, *sorted(path for path in PACKAGE.iterdir() if path.is_dir())]
    for folder in folders:
        found = [] if folder.name in LEFT_OUT else list(constants_in(folder))
        if found:
            parts.append(f"## {folder.name}\n")
            parts.append("| constant | value | module | meaning |")
            parts.append("| --- | --- | --- | --- |")
            parts += [
                f"| `{one.name}` | `{one.value}` | `{one.module}` | {one.text} |"
                for one in found
            ]
            parts.append("")
    return "\n".join(parts)


def constants_in(folder: Path) -> Iterator[Constant]:
    """Constants of the modules of a folder, in order; of the package, its own alone."""
    files = folder.glob("*.py") if folder == PACKAGE else folder.rglob("*.py")
    for file in sorted(files):
        source = file.read_text()
        body = ast.parse(source).body
        for statement, after in zip(body, [*body[1:], None], strict=True):
            name = constant_name(statement)
            if name and is_numeric(statement.value):
                value = ast.get_source_segment(source, statement.value)
                module = file.relative_to(PACKAGE).as_posix()
                yield Constant(module, name, one_line(value), text_of(after))


def constant_name(statement: ast.stmt) -> str:
    """The name or names that a statement defines if they are capitals, else nothing."""
    if not isinstance(statement, ast.Assign):
        return ""
    name = ast.unparse(statement.targets[0]).strip("()")
    return name if name.isupper() and len(statement.targets) == 1 else ""


def is_numeric(node: ast.expr) -> bool:
    """Whether an expression is made of numbers alone; dicts may have other keys."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.UnaryOp(operand=operand):
            return is_numeric(operand)
        case ast.BinOp(left=left, right=right):
            return is_numeric(left) and is_numeric(right)
        case ast.Tuple(elts=entries) | ast.Dict(values=entries):
            return all(map(is_numeric, entries))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np")), args=entries):
            return all(map(is_numeric, entries))
    return False


def text_of(statement: ast.stmt | None) -> str:
    """A string that stands below a constant, in one line."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return one_line(text).replace("|", r"\|")
    return ""


def one_line(text: str) -> str:
    """Text without line breaks."""
    return " ".join(text.split())


if __name__ == "__main__":
    (HERE / "constants.md").write_text(page())
