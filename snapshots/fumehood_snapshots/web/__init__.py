"""Live pages, fetched behind an allow-list by the side that is trusted, recorded and replayed."""
