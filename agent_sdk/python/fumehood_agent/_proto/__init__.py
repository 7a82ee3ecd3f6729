"""Generated messages and services of the wire protocol; private to this package."""
