"""Every call of the model on file: checkpoint, warm start and audit at once."""
