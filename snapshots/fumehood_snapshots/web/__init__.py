"""Live pages: fetched on the trusted side behind an allow-list, recorded and replayed."""
