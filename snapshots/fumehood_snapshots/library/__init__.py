"""The tools ``search`` and ``open_page`` over a snapshot, a recording or the network."""
