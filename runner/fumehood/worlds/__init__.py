"""Simulators, one file each, one table. They know nothing about budgets, faults, traces or agents."""
