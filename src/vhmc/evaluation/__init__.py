"""Targets, the evaluator with its budget, the ledger, replay and resuming."""
