"""From the raw bytes of a page to its title and text; wording is never changed, markup is dropped."""
