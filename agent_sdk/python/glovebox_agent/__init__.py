"""What an agent needs to work through a glovebox."""
