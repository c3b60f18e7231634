"""Compile a Stan program with httpstan's wheel, and call it with its data in memory.

The wheel has stanc, the headers and the libraries: beyond the Python package index,
only a C++ compiler is needed.
"""

import contextlib
import ctypes
import hashlib
import importlib.resources
import os
import platform
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pooch

from vhmc._imports import load_extra
from vhmc.evaluation.ledger import locked

MACROS = [
    ("BOOST_DISABLE_ASSERTS", None),
    ("BOOST_PHOENIX_NO_VARIADIC_EXPRESSION", None),
    ("STAN_THREADS", None),
    ("_REENTRANT", None),
    # The libraries in the wheel were built with this ABI.
    ("_GLIBCXX_USE_CXX11_ABI", "0"),
]
LIBRARIES = ["sundials_cvodes", "sundials_idas", "sundials_nvecserial", "tbb"]
LONGEST = 600.0
"""Seconds to wait for another process that compiles the same program."""
PREFIX = "vhmc_stan_"
"""Of the C functions in `httpstan_model.cpp`."""

_DOUBLES = np.ctypeslib.ndpointer(dtype=np.float64, flags="C_CONTIGUOUS")


class HttpstanModel:
    """A Stan model compiled here; several threads may call it at once.

    code: the program.
    data: the program's data as JSON.
    """

    def __init__(self, code: str, data: str):
        self._library = _declared(ctypes.CDLL(str(build(code))))
        error = ctypes.c_char_p()
        self._model = self._call("new", data.encode(), ctypes.byref(error))
        if not self._model:
            raise ValueError(f"Stan refuses the data: {self._message(error)}")
        self.dim = int(self._call("dim", self._model))

    def unconstrained_names(self) -> list[str]:
        """Names of the entries of the unconstrained vector."""
        return self._text(self._call("unconstrained_names", self._model)).split()

    def layout(self, is_whole: bool) -> dict[str, tuple[int, ...]]:
        """Shapes by name of the parameters, or of every quantity of the program."""
        whole = int(is_whole)
        text = self._text(self._call("layout", self._model, whole, whole))
        rows = [line.split() for line in text.splitlines()]
        return {name: tuple(map(int, extents)) for name, *extents in rows}

    def value_and_grad(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Log density with all constants and Jacobians, and its gradient."""
        grad = np.array(theta, dtype=float)
        value, error = ctypes.c_double(), ctypes.c_char_p()
        result = ctypes.byref(value), grad, ctypes.byref(error)
        if self._call("value_and_grad", self._model, *result):
            raise ArithmeticError(self._message(error))
        return value.value, grad

    def write(self, thetas: np.ndarray, is_whole: bool, seed: int) -> np.ndarray:
        """Quantities of `layout`, flat, one row for each row of `thetas`."""
        thetas = np.ascontiguousarray(thetas, dtype=float)
        shapes = self.layout(is_whole).values()
        out = np.empty((len(thetas), sum(int(np.prod(shape)) for shape in shapes)))
        whole, width = int(is_whole), out.shape[1]
        points = thetas, len(thetas)
        self._call("write", self._model, *points, whole, whole, seed, out, width)
        return out

    def unconstrain(self, values: str) -> np.ndarray:
        """Unconstrained vector of parameter values, which are given as JSON."""
        theta, error = np.empty(self.dim), ctypes.c_char_p()
        json = values.encode()
        if self._call("unconstrain", self._model, json, theta, ctypes.byref(error)):
            raise ValueError(f"Stan refuses the start: {self._message(error)}")
        return theta

    def __del__(self) -> None:
        if getattr(self, "_model", None):
            self._call("delete", self._model)

    def _call(self, name: str, *arguments: Any) -> Any:
        return getattr(self._library, PREFIX + name)(*arguments)

    def _text(self, pointer: int) -> str:
        text = ctypes.string_at(pointer).decode()
        self._call("free_text", pointer)
        return text

    def _message(self, error: ctypes.c_char_p) -> str:
        text = (error.value or b"").decode().removeprefix("Exception: ")
        self._call("free_text", error)
        return text


def _declared(library: Any) -> Any:
    """Declare the C functions, so that ctypes checks and converts their arguments."""
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    error = ctypes.POINTER(ctypes.c_char_p)
    value = ctypes.POINTER(ctypes.c_double)
    text, number, seed = ctypes.c_char_p, ctypes.c_int, ctypes.c_uint
    output = number, number, seed, _DOUBLES, size
    for name, answer, arguments in (
        ("free_text", None, [pointer]),
        ("new", pointer, [text, error]),
        ("delete", None, [pointer]),
        ("dim", size, [pointer]),
        ("unconstrained_names", pointer, [pointer]),
        ("layout", pointer, [pointer, number, number]),
        ("value_and_grad", number, [pointer, value, _DOUBLES, error]),
        ("write", None, [pointer, _DOUBLES, size, *output]),
        ("unconstrain", number, [pointer, text, _DOUBLES, error]),
    ):
        function = getattr(library, PREFIX + name)
        function.restype, function.argtypes = answer, arguments
    return library


def build(code: str) -> Path:
    """Shared library of a program: compiled in about a minute, then kept in a cache."""
    httpstan = load_extra("httpstan", "from_stan", "stan")
    wrapper = importlib.resources.files("vhmc.models.stan") / "httpstan_model.cpp"
    shell = wrapper.read_text()
    # With httpstan's folder: the library loads Intel's threads (TBB) from there.
    home = str(Path(str(httpstan.__file__)).parent)
    key = code, shell, httpstan.__version__, home, platform.machine(), *_flags()
    digest = hashlib.sha256("\0".join(key).encode()).hexdigest()[:20]
    library = pooch.os_cache("vhmc") / "stan" / f"{digest}.so"
    if library.exists():
        return library
    library.parent.mkdir(parents=True, exist_ok=True)
    # Of several processes that need the same program, one compiles it.
    with contextlib.closing(locked(library.with_suffix(".lock"), LONGEST)):
        if library.exists():
            return library
        with (
            tempfile.TemporaryDirectory(dir=library.parent) as folder,
            warnings.catch_warnings(),
        ):
            # httpstan finds its files by functions that Python has deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            os.replace(_compile(code, shell, Path(folder)), library)
    return library


def _flags() -> list[str]:
    """Compiler flags of the user, or the default."""
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
        "program",
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
    return next(folder.glob("program*.so"))
