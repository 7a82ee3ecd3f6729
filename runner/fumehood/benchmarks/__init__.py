"""Where tasks come from: one folder a benchmark, one table. They know nothing about boxes or services."""
