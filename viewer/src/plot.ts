/** Plain series of one group, drawn by uPlot. */

import uPlot from "uplot";
import { palette } from "./colours";
import { LEFT, listen, type Panel, RIGHT } from "./panel";
import type { Store } from "./state";
import type { Series } from "./trace";

const HEIGHT = 140;
/** A receive window this many times beyond all else would flatten it. */
const BEYOND = 3;

export interface Curve {
  series: Series;
  label: string;
  dashed: boolean;
}

export class PlotPanel implements Panel {
  private readonly plot: uPlot;
  private drawn = "";

  constructor(
    parent: HTMLElement,
    group: string,
    curves: Curve[],
    private readonly store: Store,
  ) {
    const colours = palette();
    const axis = { stroke: colours.faint, grid: { stroke: colours.line, width: 1 }, ticks: { stroke: colours.line } };
    const far = beyond(curves);
    const names = curves.map(({ label }, index) => (far.has(index) ? `${label} (far above)` : label));
    const isSampled = group === "Queue" || group === "Round-trip time";
    this.plot = new uPlot(
      {
        width: 600,
        height: HEIGHT,
        padding: [6, RIGHT, 0, 0],
        cursor: { drag: { x: false, y: false }, points: { size: 5 }, y: false },
        legend: { live: true },
        scales: { x: { time: false, auto: false }, y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.05 : 1] } },
        axes: [
          { ...axis, size: 28, values: (_u, all) => all.map((t) => `${Number(t.toFixed(9))}`), font: "11px system-ui" },
          { ...axis, size: LEFT, values: (_u, all) => all.map((v) => short(v)), font: "11px system-ui" },
        ],
        series: [
          { label: "s", value: (_u, t) => (t === null ? "–" : t.toFixed(6)) },
          ...curves.map(({ dashed }, index) => ({
            label: names[index],
            stroke: colours.list[index % 8],
            auto: !far.has(index),
            dash: dashed ? [6, 3] : undefined,
            width: 1.3,
            points: { show: false },
            spanGaps: true,
            paths: isSampled ? undefined : uPlot.paths.stepped?.({ align: 1 }),
            value: (_u: uPlot, v: number | null) => (v === null ? "–" : short(v)),
          })),
        ],
      },
      align(curves.map(({ series }) => series)),
      parent,
    );
    this.plot.over.setAttribute("role", "img");
    this.plot.over.setAttribute("aria-label", `${group} over time: ${names.join(", ")}`);
    listen(this.plot.over, store, (x) => {
      const [from, until] = store.span();
      return from + (x / this.plot.over.clientWidth) * (until - from);
    });
  }

  resize(width: number): void {
    this.plot.setSize({ width, height: HEIGHT });
    this.drawn = "";
  }

  draw(): void {
    const [from, until] = this.store.span();
    const key = `${from} ${until}`;
    if (key !== this.drawn) {
      this.drawn = key;
      this.plot.setScale("x", { min: from / 1e9, max: until / 1e9 });
    }
    const { cursor } = this.store;
    if (cursor !== null) this.plot.setCursor({ left: this.plot.valToPos(cursor / 1e9, "x"), top: 10 }, false);
    else if ((this.plot.cursor.left ?? -1) >= 0) this.plot.setCursor({ left: -10, top: -10 }, false);
  }
}

/** Receive windows that are far beyond everything else of their group. */
function beyond(curves: Curve[]): Set<number> {
  const isWindow = ({ label }: Curve) => label.endsWith("receive window");
  const most = (curve: Curve) => curve.series.value.reduce((a, b) => Math.max(a, b), 0);
  const others = curves.filter((curve) => !isWindow(curve)).map(most);
  const limit = others.length ? Math.max(...others) * BEYOND : Number.POSITIVE_INFINITY;
  return new Set([...curves.keys()].filter((i) => isWindow(curves[i]) && most(curves[i]) > limit));
}

/** Series with times of their own, on the times of all. */
export function align(series: Series[]): uPlot.AlignedData {
  const tables = series.map((one): uPlot.AlignedData => {
    const times: number[] = [];
    const values: number[] = [];
    for (let i = 0; i < one.time.length; i++) {
      const time = one.time[i] / 1e9;
      // Of several values at one time the last counts.
      if (times.length && times[times.length - 1] === time) values[values.length - 1] = one.value[i];
      else {
        times.push(time);
        values.push(one.value[i]);
      }
    }
    return [times, values];
  });
  return tables.length === 1 ? tables[0] : uPlot.join(tables);
}

/** A number with a thousandth's prefix. */
export function short(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude >= 1e9) return `${trim(value / 1e9)} G`;
  if (magnitude >= 1e6) return `${trim(value / 1e6)} M`;
  if (magnitude >= 1e4) return `${trim(value / 1e3)} k`;
  return trim(value);
}

const trim = (value: number): string => String(Number(value.toPrecision(4)));
