"""One document, and the store that reads documents back by number, id or URL."""
