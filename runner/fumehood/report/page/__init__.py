"""The HTML page of a report: one file that opens offline."""
