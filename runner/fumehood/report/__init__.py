"""From rows to tables: knows rows, knows nothing about how they came about."""
