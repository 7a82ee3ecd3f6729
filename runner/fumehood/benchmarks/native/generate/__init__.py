"""Generates native suites.

A task is made from a *template*, which takes several calls, and *obstacles*: permanent faults that
an agent can understand from an error or from the instruction. Repeating a failed call unchanged
never succeeds.
"""
