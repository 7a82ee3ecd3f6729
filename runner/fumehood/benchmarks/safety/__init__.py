"""Suites of safety scenarios, in families, with proofs (docs/safety_suites.md)."""
