"""A snapshot of Debian's package of Python's documentation, by section, with questions.

The pages belong to the package ``python3.11-doc``, which must be installed; the questions,
judgements and answers belong to this project.
"""
