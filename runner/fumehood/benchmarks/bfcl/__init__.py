"""The Berkeley Function-Calling Leaderboard, version 4, from the package bfcl-eval."""
