"""Forty tasks written for this project: ten a world, every fault family, some that nobody can solve."""
