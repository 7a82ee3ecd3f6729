"""Sources of documents. Each source yields items in a fixed order."""
