"""Estimators: the only room that knows the interface of scikit-learn."""
