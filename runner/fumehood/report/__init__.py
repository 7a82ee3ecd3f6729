"""Reports of finished runs: statistics, tables, pictures and pages, from rows and traces."""
