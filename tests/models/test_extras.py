"""A front end whose library is missing says what to install, in one line."""

import subprocess
import sys

import pytest

HIDE = """
import sys
sys.modules[{module!r}] = None
import vhmc
try:
    {call}
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("module", "call", "message"),
    [
        (
            "numpyro",
            "vhmc.from_numpyro(lambda: None)",
            "from_numpyro needs numpyro: pip install 'vhmc[numpyro]'",
        ),
        (
            "pymc",
            "vhmc.from_pymc()",
            "from_pymc needs pymc: pip install 'vhmc[pymc]'",
        ),
        (
            "httpstan",
            "vhmc.from_stan('parameters {real x;} model {x ~ normal(0, 1);}')",
            "from_stan needs httpstan: pip install 'vhmc[stan]'",
        ),
    ],
)
def test_what_to_install(module, call, message):
    code = HIDE.format(module=module, call=call)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == message


def test_the_core_imports_none_of_them():
    code = (
        "import sys, vhmc; "
        "print({'numpyro', 'pymc', 'httpstan', 'umbridge'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
