"""Runs unmodified third-party checkers and simulators in separate, unprivileged processes."""
