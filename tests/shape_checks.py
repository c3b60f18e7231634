"""The type checker behind the run-time shape checks."""

from beartype import BeartypeConf, beartype

# The numeric tower: an int is welcome where a float is asked for.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
