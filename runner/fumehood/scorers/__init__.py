"""From evidence and gold to scores: one file a kind, one table. They see no box and no service."""
