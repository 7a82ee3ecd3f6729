"""Measures retrieval against relevance judgements."""
