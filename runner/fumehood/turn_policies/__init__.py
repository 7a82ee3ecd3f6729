"""Turn policies select the next seat of a conversation."""
