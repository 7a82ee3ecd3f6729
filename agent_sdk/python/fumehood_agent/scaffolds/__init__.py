"""Agents around a model: same tools, same budgets, same task; only the way of working differs."""
