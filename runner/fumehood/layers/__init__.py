"""What happens around a call, one file a layer. Fault families are layers too, in a room of their own."""
