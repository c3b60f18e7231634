"""Front ends: what each makes of a user's model is a `Target`."""
