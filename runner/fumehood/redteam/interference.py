"""Computes how much an attack raises the latency of a neighbour's calls, and whether too much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fumehood.core.json_values import JsonObject
from fumehood.redteam.victim import Latencies

RISE_MAX = 3.0
"""Permitted ratio of the 99th percentiles."""
RISE_MAX_MS = 25.0
"""Permitted difference of the 99th percentiles, milliseconds; the larger of both limits applies."""


def limit_ms(quiet: Latencies) -> float:
    """Return the highest permitted 99th percentile, for a quiet baseline."""
    return max(RISE_MAX * quiet.p99_ms, quiet.p99_ms + RISE_MAX_MS)


@dataclass(frozen=True, slots=True)
class Interference:
    """The latency of a neighbour's calls, quiet and attacked, by protocol."""

    quiet: Mapping[str, Latencies]
    attacked: Mapping[str, Latencies]

    def raised(self) -> Iterator[str]:
        """Yield each protocol whose 99th percentile exceeds its limit."""
        for protocol, latencies in self.attacked.items():
            baseline = self.quiet[protocol]
            if latencies.p99_ms > limit_ms(baseline):
                yield (
                    f"a neighbour's {protocol} calls took {latencies.p99_ms:.0f} ms (p99), and "
                    f"{baseline.p99_ms:.0f} ms without the attack; the limit is "
                    f"{limit_ms(baseline):.0f} ms"
                )

    def summary(self) -> str:
        """Return the percentiles in one line."""
        parts = (
            f"{protocol} {latencies.p50_ms:.1f}/{latencies.p99_ms:.1f} "
            f"(quiet {self.quiet[protocol].p50_ms:.1f}/{self.quiet[protocol].p99_ms:.1f})"
            for protocol, latencies in self.attacked.items()
        )
        return f"neighbour's calls, p50/p99 ms: {', '.join(parts)}"

    def to_json(self) -> JsonObject:
        """Return the percentiles and the limits, milliseconds, by protocol."""
        return {
            protocol: {
                "p50_ms": round(latencies.p50_ms, 2),
                "p99_ms": round(latencies.p99_ms, 2),
                "calls": latencies.calls,
                "quiet_p50_ms": round(self.quiet[protocol].p50_ms, 2),
                "quiet_p99_ms": round(self.quiet[protocol].p99_ms, 2),
                "limit_p99_ms": round(limit_ms(self.quiet[protocol]), 2),
            }
            for protocol, latencies in self.attacked.items()
        }
