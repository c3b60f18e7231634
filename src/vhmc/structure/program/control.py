"""Calls, branches and loops inside a traced program."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jax.extend.core import ClosedJaxpr

from vhmc.structure.program.sets import CONSTANT, Sets
from vhmc.structure.program.values import Value, unknown_constants

MAX_PASSES = 8
"""Through the body of a loop, until its sets no longer grow."""

MAX_UNROLLED = 40_000
"""Operations in all steps of a scan, beyond which its steps are not told apart."""


@runtime_checkable
class Runner(Protocol):
    """What runs the programs inside."""

    sets: Sets

    def run(self, closed: Any, inputs: Sequence[Value]) -> list[Value]:
        """Outputs of a closed program."""


Rule = Callable[[Runner, dict[str, Any], list[Value]], list[Value]]


def _call(runner: Runner, params: dict[str, Any], values: list[Value]) -> list[Value]:
    """A program in a program; a derivative given by hand does not matter."""
    inner = next(params[key] for key in PROGRAMS if key in params)
    if not isinstance(inner, ClosedJaxpr):
        inner = ClosedJaxpr(inner, ())
    return runner.run(inner, values)


def _branch(runner: Runner, params: dict[str, Any], values: list[Value]) -> list[Value]:
    """One of several programs; which one may depend on parameters."""
    which, inputs = values[0], values[1:]
    branches = params["branches"]
    if which.known is not None:
        chosen = int(np.clip(which.known, 0, len(branches) - 1))
        return runner.run(branches[chosen], inputs)
    outcomes = [runner.run(branch, inputs) for branch in branches]
    joined = outcomes[0]
    for other in outcomes[1:]:
        joined = _joined(runner.sets, joined, other)
    return _decided_by(runner.sets, which, joined)


def _scan(runner: Runner, params: dict[str, Any], values: list[Value]) -> list[Value]:
    """Every step by itself, or all together if there are too many."""
    number, split = params["num_consts"], params["num_consts"] + params["num_carry"]
    fixed, carry, rows = values[:number], values[number:split], values[split:]
    body, length = params["jaxpr"], params["length"]
    if length * num_operations(body.jaxpr) > MAX_UNROLLED:
        merged = [_row_of_any(runner.sets, row) for row in rows]
        outputs = _settled(runner, body, fixed, carry, merged)
        carried = outputs[: len(carry)]
        stacked = [
            Value(np.broadcast_to(out.sets, (length, *out.sets.shape)))
            for out in outputs[len(carry) :]
        ]
        return [*_joined(runner.sets, carry, carried), *stacked]
    steps = range(length)[::-1] if params["reverse"] else range(length)
    collected: dict[int, list[Value]] = {}
    met: dict[tuple[bytes, ...], list[Value]] = {}
    for step in steps:
        changing = [*carry, *(_entry(row, step) for row in rows)]
        key = tuple(map(_digest, changing))
        if key not in met:
            met[key] = runner.run(body, [*fixed, *changing])
        outputs = met[key]
        carry, collected[step] = outputs[: len(carry)], outputs[len(carry) :]
    if not length:
        kinds = [var.aval for var in body.jaxpr.outvars[len(carry) :]]
        return [*carry, *(unknown_constants((0, *kind.shape)) for kind in kinds)]
    columns = zip(*(collected[step] for step in range(length)), strict=True)
    return [*carry, *(_stacked(column) for column in columns)]


def _while(runner: Runner, params: dict[str, Any], values: list[Value]) -> list[Value]:
    """Step by step while the test is known; then all further steps together."""
    first, second = params["cond_nconsts"], params["body_nconsts"]
    of_test, of_body = values[:first], values[first : first + second]
    carry = values[first + second :]
    test, body = params["cond_jaxpr"], params["body_jaxpr"]
    for _ in range(MAX_UNROLLED // (1 + num_operations(body.jaxpr))):
        (goes_on,) = runner.run(test, [*of_test, *carry])
        if goes_on.known is None:
            break
        if not goes_on.known:
            return carry
        carry = runner.run(body, [*of_body, *carry])
    last = _settled(runner, body, of_body, carry, [])
    carry = _joined(runner.sets, carry, last)
    (goes_on,) = runner.run(test, [*of_test, *carry])
    return _decided_by(runner.sets, goes_on, carry)


def _settled(
    runner: Runner,
    body: Any,
    fixed: list[Value],
    carry: list[Value],
    rows: list[Value],
) -> list[Value]:
    """Outputs of the body of a loop for the sets that any step may meet."""
    sets = runner.sets
    for _ in range(MAX_PASSES):
        outputs = runner.run(body, [*fixed, *carry, *rows])
        grown = _joined(sets, carry, outputs[: len(carry)])
        is_same = all(map(_is_same, carry, grown))
        carry = grown
        if is_same:
            return outputs
    # No step can bring in more than all there is.
    everything = sets.union_all(*(value.sets for value in [*fixed, *carry, *rows]))
    everything = np.maximum(everything, CONSTANT)
    carry = [Value(np.broadcast_to(everything, v.sets.shape)) for v in carry]
    return runner.run(body, [*fixed, *carry, *rows])


def _is_same(old: Value, new: Value) -> bool:
    is_known = (old.known is None) == (new.known is None)
    return is_known and np.array_equal(old.sets, new.sets)


def _joined(sets: Sets, first: list[Value], second: list[Value]) -> list[Value]:
    """Either of two outcomes."""

    def join(a: Value, b: Value) -> Value:
        is_same = (
            a.known is not None
            and b.known is not None
            and np.array_equal(a.known, b.known)
        )
        return Value(sets.union(a.sets, b.sets), a.known if is_same else None)

    return list(map(join, first, second))


def _decided_by(sets: Sets, decision: Value, outcomes: list[Value]) -> list[Value]:
    """Outcomes that parameters choose among, which interact with what is chosen."""
    if decision.is_constant:
        return outcomes
    chooser = sets.union_all(decision.sets)
    for outcome in outcomes:
        sets.interact(chooser, outcome.sets)
    return [Value(sets.union(chooser, outcome.sets)) for outcome in outcomes]


def _entry(rows: Value, step: int) -> Value:
    """One row; of data only the zeros, so that steps with the same zeros are alike."""
    sets = np.asarray(rows.sets[step])
    if rows.known is None or rows.known.dtype.kind == "f":
        return Value(sets)
    return Value(sets, np.asarray(rows.known[step]))


def _digest(value: Value) -> bytes:
    """What tells values of the same shape apart."""
    known = b"" if value.known is None else value.known.tobytes()
    return b"%d " % len(known) + known + value.sets.tobytes()


def _row_of_any(sets: Sets, rows: Value) -> Value:
    return Value(sets.union_along(rows.sets, (0,)))


def _stacked(column: Sequence[Value]) -> Value:
    known = [value.known for value in column if value.known is not None]
    return Value(
        np.stack([value.sets for value in column]),
        np.stack(known) if len(known) == len(column) else None,
    )


def num_operations(program: Any) -> int:
    """Operations of a program, with those of the programs inside."""
    total = len(program.eqns)
    for equation in program.eqns:
        factor = equation.params.get("length", 1)
        total += factor * sum(num_operations(p) for p in _programs_in(equation))
    return total


def primitives_of(program: Any) -> set[str]:
    """Names of the primitives of a program, with those of the programs inside."""
    names = {equation.primitive.name for equation in program.eqns}
    inner = [p for equation in program.eqns for p in _programs_in(equation)]
    return names.union(*map(primitives_of, inner))


def _programs_in(equation: Any) -> list[Any]:
    inner = [p for p in equation.params.values() if hasattr(p, "eqns")]
    return [
        getattr(p, "jaxpr", p) for p in (*inner, *equation.params.get("branches", ()))
    ]


PROGRAMS = ("jaxpr", "call_jaxpr", "call")
CALLS = (
    "closed_call custom_jvp_call custom_vjp_call custom_vmap_call jit remat2".split()
)
RULES: dict[str, Rule] = {
    **dict.fromkeys(CALLS, _call),
    "cond": _branch,
    "scan": _scan,
    "while": _while,
}
