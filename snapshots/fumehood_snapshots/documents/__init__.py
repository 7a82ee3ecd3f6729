"""Documents, and the store that reads them by number, ID or URL."""
