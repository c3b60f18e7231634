"""Compile a Stan program with what httpstan's wheel carries: stanc, headers, libraries.

Nothing but a C++ compiler is needed beside the Python package index.
"""

import contextlib
import hashlib
import importlib.resources
import os
import platform
import shutil
import tempfile
import warnings
from pathlib import Path

import pooch

from vhmc.evaluation.lock import locked
from vhmc.models.extras import load

MACROS = [
    ("BOOST_DISABLE_ASSERTS", None),
    ("BOOST_PHOENIX_NO_VARIADIC_EXPRESSION", None),
    ("STAN_THREADS", None),
    ("_REENTRANT", None),
    # The libraries in the wheel were built for this one.
    ("_GLIBCXX_USE_CXX11_ABI", "0"),
]
LONGEST = 600.0
"""Seconds that a compilation may take in another process."""
LIBRARIES = ["sundials_cvodes", "sundials_idas", "sundials_nvecserial", "tbb"]


def build(code: str) -> Path:
    """The shared library of a program; it takes a minute, once for each program."""
    httpstan = load("httpstan", "from_stan", "stan")
    around = importlib.resources.files("vhmc.models.stan") / "resident.cpp"
    shell = around.read_text()
    # With its place: the library finds Intel's threads in httpstan's own folder.
    home = str(Path(str(httpstan.__file__)).parent)
    marks = code, shell, httpstan.__version__, home, platform.machine(), *_flags()
    digest = hashlib.sha256("\0".join(marks).encode()).hexdigest()[:20]
    library = pooch.os_cache("vhmc") / "stan" / f"{digest}.so"
    if library.exists():
        return library
    library.parent.mkdir(parents=True, exist_ok=True)
    # Of several processes that need the same program one compiles it.
    with contextlib.closing(locked(library.with_suffix(".lock"), LONGEST)):
        if library.exists():
            return library
        with (
            tempfile.TemporaryDirectory(dir=library.parent) as folder,
            warnings.catch_warnings(),
        ):
            # httpstan finds its files by functions that Python will drop one day.
            warnings.simplefilter("ignore", DeprecationWarning)
            os.replace(_compile(code, shell, Path(folder)), library)
    return library


def _flags() -> list[str]:
    """Of the compiler; those of the user come first."""
    return os.environ.get("CXXFLAGS", "-O3").split()


def _compile(code: str, shell: str, folder: Path) -> Path:
    import httpstan.build_ext
    import httpstan.compile
    import setuptools

    if shutil.which(os.environ.get("CXX", "c++")) is None:
        raise ValueError("from_stan needs a C++ compiler, and there is no `c++`")
    try:
        generated, _ = httpstan.compile.compile(code, "program")
    except ValueError as error:
        raise ValueError(f"stanc refuses the program: {error}") from error
    source = folder / "program.cpp"
    source.write_text(f"{generated}\n{shell}")
    home = Path(httpstan.__file__).parent
    extension = setuptools.Extension(
        "resident",
        language="c++",
        sources=[str(source)],
        define_macros=MACROS,
        include_dirs=[str(home / "include")],
        library_dirs=[str(home / "lib")],
        libraries=LIBRARIES,
        extra_compile_args=[*_flags(), "-std=c++17", "-w"],
        extra_link_args=[f"-Wl,-rpath,{home / 'lib'}"],
    )
    httpstan.build_ext.run_build_ext([extension], str(folder))
    return next(folder.glob("resident*.so"))
