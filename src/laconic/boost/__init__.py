"""The loop and its parts: rows, rules, path, refinement, checkpoints, hooks."""
