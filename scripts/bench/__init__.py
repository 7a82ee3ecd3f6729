"""What things cost, as ratios to a peer or to the limit, measured in one run. Never a test."""
