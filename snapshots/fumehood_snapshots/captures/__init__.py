"""Raw pages as WARC: written reproducibly, read in bounded memory, found by record ID."""
