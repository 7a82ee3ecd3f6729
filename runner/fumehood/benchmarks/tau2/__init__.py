"""τ²-bench: an agent, a company's database, and a user who wants something; telecom also without the user."""
