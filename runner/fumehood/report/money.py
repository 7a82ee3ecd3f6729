"""Money as people read it."""

from __future__ import annotations


def dollars(microusd: float) -> str:
    """Return millionths of a dollar as dollars, with as many decimals as they need."""
    sign, value = "-" if microusd < 0 else "", abs(microusd) / 1e6
    if value >= 1:
        return f"{sign}${value:,.2f}"
    return f"{sign}${f'{value:.6f}'.rstrip('0').rstrip('.')}"
