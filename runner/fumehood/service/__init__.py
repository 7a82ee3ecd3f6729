"""The service: hosts episodes. It never receives gold answers."""
