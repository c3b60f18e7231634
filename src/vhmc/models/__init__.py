"""Front ends: turn the user's model into a `Target`.

One file `from_<library>.py` for each front end, or a folder where one file is not
enough (`rows`, `stan`). A front end describes the parameters by a `Space` and returns
one of two kinds of target:

- `traced.TracedTarget`: JAX can trace the log density.
- `host.HostTarget`: it runs outside JAX, in any language, on any machine.

Parts that front ends share:

- `parameters`: a `Space` built from initial values and the constraints of this package.
- `caller`: a user's function evaluated at many points, serially or in parallel.
- `differences`: gradients by finite differences.
- `batches`: traced functions compiled for batches of points.
"""
