"""The Berkeley Function-Calling Leaderboard, version 4, from its own package."""
