"""Building a snapshot: chunks of the inputs, in parallel and resumable, then one merge and the seal."""
