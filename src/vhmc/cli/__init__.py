"""The command `vhmc`, with one module per subcommand."""

import os
import sys
from typing import Annotated

import typer

from vhmc.cli import bench, demo, ledger, report, reproduce, sample
from vhmc.cli.terminal import Debug, complain, console, is_debugging

DEFECT = 1
"""Exit code of an unexpected error."""
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog="Begin with `vhmc demo`; every command has a --help with an example.",
)
app.command("demo", epilog="Example: vhmc demo --out first")(demo.demo)
app.command("sample")(sample.sample)
app.command("report")(report.report)
app.add_typer(
    reproduce.app, name="reproduce", help="Reproduce an experiment of the paper."
)
app.add_typer(
    bench.app, name="bench", help="Compare with known posteriors and other methods."
)
app.add_typer(ledger.app, name="ledger", help="Inspect the evaluations of a run.")


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.")
    ] = False,
    show_traceback: Debug = False,
) -> None:
    """Bayesian posteriors whose gradient is expensive, from few exact gradients."""
    is_debugging.set(show_traceback)
    if version:
        import vhmc

        console.print(vhmc.__version__)
        raise typer.Exit()


def main() -> None:
    """Run the command, with XLA's compiled programs cached between runs."""
    import jax
    import pooch

    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        folder = str(pooch.os_cache("vhmc") / "compiled")
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
    try:
        app()
    except Exception as error:  # a full disk or a defect: one line, not a traceback
        if is_debugging.get():
            raise
        complain(f"{type(error).__name__}: {error}", "vhmc --debug shows where")
        sys.exit(DEFECT)
