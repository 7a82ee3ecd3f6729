"""τ-bench, the first: an agent talks to a user, under a policy, over a database."""
