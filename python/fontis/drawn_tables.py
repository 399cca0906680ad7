"""Tables of papers, drawn with our values beside the published ones, and the cascade of Table 4.1.

A table's cells are claims: what is published, and below it what came of that here.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from fontis import claims, fairness, plots
from fontis._native import Checked


def _number(value: float | None) -> str:
    """Three digits behind the point, or fewer of what is large."""
    if value is None or math.isnan(value):
        return ""
    text = f"{value:.3f}" if abs(value) < 10 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".")


def _cell(judged: dict[str, Checked], ids: Sequence[str]) -> str:
    found = [judged[one] for one in ids]
    lines = [[_number(claim.published_number) for claim in found], [_number(claim.ours) for claim in found]]
    return "\n".join("; ".join(line) for line in lines)


def table(book: str, pattern: str, rows: Sequence[str], columns: Sequence[tuple[str, str]], corner: str) -> Any:
    """Draw a table whose cells are claims.

    ``pattern`` is their identifier with ``{row}`` and ``{column}`` in it. A row is what stands for
    it in identifiers, with ``=`` and its label; a column has a label, and what stands for it;
    commas there separate several claims of one cell.
    """
    known = claims.Book(book)
    ids = set(known.ids)

    def of(row: str, column: str) -> list[str]:
        return [pattern.replace("{row}", row).replace("{column}", part) for part in column.split(",")]

    named = [row.partition("=") for row in rows]
    cells = [[of(row, column) for _, column in columns] for row, _, _ in named]
    wanted = [one for line in cells for cell in line for one in cell if one in ids]
    judged = {claim.id: claim for claim in known.check(*wanted) if claim.id in wanted}
    texts = [[_cell(judged, cell) if all(one in judged for one in cell) else "" for cell in line] for line in cells]
    drawn, (axes, *_) = plots.new(1)
    longest = (max(len(part) for text in column for part in text.split("\n")) for column in zip(*texts, strict=True))
    width = 1.0 + sum(0.42 + 0.055 * letters for letters in longest)
    drawn.set_size_inches(max(3.4, width), 0.5 + 0.34 * len(rows))
    axes.axis("off")
    head = [label for label, _ in columns]
    shown = axes.table(
        cellText=texts,
        rowLabels=[label or row for row, _, label in named],
        colLabels=head,
        cellLoc="center",
        bbox=(0.0, 0.0, 1.0, 1.0),
    )
    shown.auto_set_font_size(False)
    shown.set_fontsize(6.5)
    for place, line in enumerate(cells, 1):
        for at, cell in enumerate(line):
            if any(one in judged and judged[one].verdict == "differs" for one in cell):
                shown[place, at].set_facecolor("#F6D5C3")
    axes.set_title(textwrap.fill(corner, int(17 * drawn.get_size_inches()[0])), fontsize=7)
    return drawn


def cascade(nodes: Sequence[tuple[float, float]], found: Sequence[Mapping[tuple[str, str], float]]) -> Any:
    """Draw what ten users of weight 1 and ten of weight 2 have behind nodes in a row, (C, α) each.

    Bars are the closed form, marks the shares of a run by packets.
    """
    users = [fairness.User(weight) for weight in (1.0, 2.0) for _ in range(10)]
    shares = fairness.cascade([fairness.SharedNode(*node) for node in nodes], users)
    drawn, panels = plots.new(len(nodes))
    labels = [f"A{place}" for place in range(1, 11)] + [f"B{place}" for place in range(1, 11)]
    for at, (axes, (capacity, alpha)) in enumerate(zip(panels, nodes, strict=True)):
        colours = [plots.COLOURS[0]] * 10 + [plots.COLOURS[1]] * 10
        axes.bar(range(20), shares[at], color=colours, width=0.7)
        axes.axhline(capacity / 20, color="black", linewidth=0.6, linestyle=":")
        index = math.fsum(shares[at]) ** 2 / (20 * math.fsum(share * share for share in shares[at]))
        axes.set_title(f"behind node {'XYZ'[at]}: capacity {capacity:g}, α = {alpha:g}, Jain's index {index:.3f}")
        axes.set_ylabel("share [units]")
        axes.set_xticks(range(20), labels, fontsize=5)
    for metrics in found[:1]:
        rates = [metrics["goodput", f"{kind}.{place}"] for kind in ("light", "heavy") for place in range(1, 11)]
        # Headers take the rest of the link.
        packets = [nodes[-1][0] * rate / math.fsum(rates) for rate in rates]
        panels[-1].plot(range(20), packets, **{**plots.look(6), "linestyle": ""}, label="by packets")
        panels[-1].legend()
    return drawn
