"""Raw pages as WARC: written the same each time, read in bounded memory, found by record id."""
