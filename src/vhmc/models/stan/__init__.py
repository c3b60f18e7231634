"""Stan programs: `from_stan`, and two ways to compile and call a program."""
