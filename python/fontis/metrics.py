"""What experiments are judged by, computed as the simulator computes it; ``docs/recording.md`` lists what is recorded."""

from fontis._native import (
    delta_fair_convergence,
    equivalent_redundancy,
    goodput,
    jain,
    max_min_shares,
    quantile,
)

__all__ = ["delta_fair_convergence", "equivalent_redundancy", "goodput", "jain", "max_min_shares", "quantile"]
