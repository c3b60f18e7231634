"""Follow sets of parameters through a traced program, without evaluating it."""
