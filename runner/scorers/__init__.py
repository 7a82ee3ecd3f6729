"""From evidence and gold to scores: one file a criterion family, one table. They see no box and no service."""
