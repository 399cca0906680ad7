/** What the exchange view shows from far, where lines would be ink. */

import { colourOf, palette } from "./colours";
import type { Store } from "./state";
import { Fate, isOf, Mark, type Trace } from "./trace";

/** From far: for each row of pixels how many packets left each lane, towards where they went. */
export function drawDensity(
  context: CanvasRenderingContext2D,
  trace: Trace,
  store: Store,
  [first, last]: [number, number],
  height: number,
  top: number,
  place: (lane: number) => number,
): void {
  const colours = palette();
  const [from, until] = store.span();
  const rows = Math.max(1, Math.floor(height / 2));
  const scale = rows / (until - from);
  const categories = 10;
  const { colour, marks, lost } = store.shown;
  const filtered = marks !== 0 || lost;
  // By pair of lanes: row by category.
  const pairs = new Map<number, Uint32Array>();
  let pair = -1;
  let bins: Uint32Array | undefined;
  for (let i = first; i < last; i++) {
    if (!isOf(trace, i, store.shown)) continue;
    const row = Math.floor((trace.sent[i] - from) * scale);
    if (row < 0 || row >= rows) continue;
    const here = trace.from[i] * 65536 + trace.to[i];
    if (here !== pair || !bins) {
      pair = here;
      bins = pairs.get(here);
      if (!bins) {
        bins = new Uint32Array(rows * categories);
        pairs.set(here, bins);
      }
    }
    let category = colourOf(trace, i, colour) & 7;
    if (trace.fate[i] === Fate.Lost) category = 9;
    else if (trace.mark[i] & Mark.Retransmitted) category = 8;
    if (filtered && !((trace.mark[i] & marks) !== 0 || (lost && category === 9))) continue;
    bins[row * categories + category]++;
  }
  let most = 1;
  for (const bins of pairs.values()) {
    for (let row = 0; row < rows; row++) {
      let sum = 0;
      for (let c = 0; c < categories; c++) sum += bins[row * categories + c];
      if (sum > most) most = sum;
    }
  }
  for (const [lanes, bins] of pairs) {
    const [x0, x1] = [place(Math.floor(lanes / 65536)), place(lanes % 65536)];
    const reach = (x1 - x0) * 0.48;
    for (let c = 0; c < categories; c++) {
      context.fillStyle = c === 9 ? colours.lost : c === 8 ? colours.again : colours.list[c];
      for (let row = 0; row < rows; row++) {
        const value = bins[row * categories + c];
        if (!value) continue;
        let before = 0;
        for (let b = 0; b < c; b++) before += bins[row * categories + b];
        // What is rare is seen all the same.
        const length = Math.max((value / most) * Math.abs(reach), c >= 8 ? 3 : 1) * Math.sign(reach);
        context.fillRect(x0 + (before / most) * reach, top + row * 2, length, 2);
      }
    }
  }
}
