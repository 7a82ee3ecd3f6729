"""τ-bench: an agent serves a customer under a policy, with tools over a database."""
