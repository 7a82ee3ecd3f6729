"""BM25: postings, weights, scores, selection of the best k, filters."""
