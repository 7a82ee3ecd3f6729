"""What agents use: ``search`` and ``open_page``, the same over a snapshot, a recording or the network."""
