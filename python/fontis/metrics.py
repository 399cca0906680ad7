"""The metrics of experiments, as the simulator computes them; see ``docs/recording.md``."""

from fontis._native import (
    delta_fair_convergence,
    equivalent_redundancy,
    goodput,
    jain,
    max_min_shares,
    quantile,
)

__all__ = ["delta_fair_convergence", "equivalent_redundancy", "goodput", "jain", "max_min_shares", "quantile"]
