"""Building a snapshot: chunks of the inputs, in parallel and resumable, then one merge into the sealed folder."""
