"""τ²-bench: an agent serves a user with tools over a company's database; telecom also works without
a user."""
