"""Images for boxes: what is in them, and how they are made where nothing can be fetched."""
