"""The tree keeps its promises: imports point down, files stay small, no attic."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "vhmc"
LAYERS = [
    {"_types", "_arguments", "_imports"},
    {"numerics"},
    {"structure"},
    {"transport"},
    {"report"},
    {"evaluation"},
    {"surrogate"},
    {"models"},
    {"sampler"},
    {"paper"},
    {"lab"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    modules = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    modules |= {
        alias.name
        for n in ast.walk(tree)
        if isinstance(n, ast.Import)
        for alias in n.names
    }
    names = {m.split(".")[1] for m in modules if m and m.startswith("vhmc.")}
    # `from vhmc import x` is a module of the lowest layer, or the face of the package.
    for n in ast.walk(tree):
        if isinstance(n, ast.ImportFrom) and n.module == "vhmc":
            names |= {alias.name for alias in n.names}
    return names


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_imports_only_point_down(module):
    here = module.parts[0].removesuffix(".py")
    if here == "__init__":
        return
    for name in imported(PACKAGE / module):
        assert LEVEL[name] <= LEVEL[here], f"{module} imports {name}"


def test_every_module_is_in_a_layer():
    rooms = {module.parts[0].removesuffix(".py") for module in MODULES}
    assert rooms - {"__init__"} <= set(LEVEL)


def test_no_attic():
    assert not {"utils.py", "util.py", "helpers.py"} & {m.name for m in MODULES}


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_public_method_is_described(module):
    """By a docstring of its own, or by that of the method it overrides."""
    name = ".".join(("vhmc", *module.with_suffix("").parts)).removesuffix(".__init__")
    for label, kind in vars(importlib.import_module(name)).items():
        if inspect.isclass(kind) and kind.__module__ == name and label[0] != "_":
            for method in vars(kind):
                if method[0] != "_" and callable(getattr(kind, method)):
                    assert inspect.getdoc(getattr(kind, method)), f"{label}.{method}"
