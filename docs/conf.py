"""The site: Sphinx with MyST and furo, built strictly by the tests."""

import re
from importlib import metadata

from docutils import nodes
from latex2mathml import converter

project = "vhmc"
author = "the vhmc developers"
copyright = f"2026, {author}"
release = version = metadata.version("vhmc")
extensions = ["myst_nb", "sphinx.ext.autodoc"]
html_math_renderer = "mathml"  # read by browsers without a script or a network
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"vhmc {release}"
default_role = "code"
nb_execution_mode = "off"  # what the pages show is run by the tests
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
autodoc_member_order = "bysource"
# Pages also read well where they lie, with links to files of the repository.
suppress_warnings = ["myst.xref_missing"]
add_module_names = False


def as_rst(app, what, name, thing, options, lines):
    """Our docstrings, a name and a colon for each argument, as Sphinx wants them."""
    out, is_list = [], False
    for line in lines:
        line = re.sub(r"\$\$(.+?)\$\$", r":math:`\1`", line)
        line = re.sub(r"(?<!\$)\$([^$]+)\$(?!\$)", r":math:`\1`", line)
        given = re.match(r"([a-z_][\w, ]*): (.*)", line)
        if given:
            if not is_list:
                out.append("")
            out.append(f"- `{given[1]}`: {given[2]}")
            is_list = True
        elif is_list and line.startswith("    "):
            out.append("  " + line.strip())
        else:
            if is_list and line:
                out.append("")
            is_list = is_list and not line
            out.append(line)
    text = "\n".join(out)
    text = re.sub(r"\$\$(.+?)\$\$", lambda m: _display(m[1]), text, flags=re.DOTALL)
    lines[:] = text.split("\n")


def _display(formula):
    body = " ".join(part.strip() for part in formula.split("\n"))
    return f"\n.. math:: {body}\n"


def inline_math(self, node):
    """A formula within a line."""
    self.body.append(converter.convert(node.astext()))
    raise nodes.SkipNode


def block_math(self, node):
    """A formula on a line of its own."""
    self.body.append(converter.convert(node.astext(), display="block"))
    raise nodes.SkipNode


def setup(app):
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("autodoc-process-docstring", as_rst)
