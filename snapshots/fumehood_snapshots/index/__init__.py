"""BM25: counted postings, their weights, scores for a query, the cut at k, filters."""
