"""Fumehood: runs untrusted agents in boxes and judges what they did."""
