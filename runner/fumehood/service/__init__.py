"""The sandbox service: hosts episodes, one socket a seat. It never holds a gold answer."""
