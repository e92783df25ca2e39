"""The boosting loop and its stages, rules, path, refinement and checkpoints."""
