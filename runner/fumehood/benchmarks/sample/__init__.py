"""The sample suite: forty tasks written for this project."""
