"""A snapshot of Python's documentation as Debian packages it, section by section, with questions to ask it.

The pages belong to the package ``python3.11-doc``, which must be installed; only the questions, the
judgements and the answers here are ours.
"""
