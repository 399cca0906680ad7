/** The timeline view: sequence numbers, blocks and series over one time axis with one cursor. */

import uPlot from "uplot";
import { colourOf, isLost, palette } from "./colours";
import { axisLabel, followed, niceStep } from "./exchange";
import type { Store } from "./state";
import { Kind, lowerBound, Mark, type Series, seconds, type Trace, underWay } from "./trace";

const LEFT = 72;
const RIGHT = 12;

interface Panel {
  draw(): void;
  resize(width: number): void;
}

export class TimelineView {
  private panels: Panel[] = [];
  private width = 0;
  private signature = "";

  constructor(
    private readonly parent: HTMLElement,
    private traces: Trace[],
    private names: string[],
    private readonly store: Store,
    private readonly onSelect: (trace: number, packet: number) => void,
  ) {
    new ResizeObserver(() => this.resize()).observe(parent);
    store.onDraw(() => this.draw());
  }

  show(traces: Trace[], names: string[]): void {
    this.traces = traces;
    this.names = names;
    this.signature = "";
    this.store.request();
  }

  private resize(): void {
    const width = this.parent.clientWidth;
    if (width < 60 || width === this.width) return;
    this.width = width;
    for (const panel of this.panels) panel.resize(width);
    this.store.request();
  }

  /** Panels are made anew when there is another flow or theme: a plot cannot change its series. */
  private build(): void {
    this.parent.replaceChildren();
    this.panels = [];
    const flow = this.store.shown.flow;
    this.traces.forEach((trace, index) => {
      const name = this.traces.length > 1 ? this.names[index] : "";
      const select = (packet: number) => this.onSelect(index, packet);
      this.panels.push(new SequencePanel(this.section(`${name} Sequence`), trace, this.store, select));
      const has = trace.blocks.flow.some((one) => flow === null || one === flow);
      if (has) this.panels.push(new BlocksPanel(this.section(`${name} Blocks`), trace, this.store));
    });
    const groups = new Map<string, { series: Series; trace: number }[]>();
    this.traces.forEach((trace, index) => {
      for (const series of trace.series) {
        if (flow !== null && series.flow !== null && series.flow !== flow) continue;
        const list = groups.get(series.group) ?? [];
        list.push({ series, trace: index });
        groups.set(series.group, list);
      }
    });
    for (const [group, list] of groups) {
      // Of many flows the first few are shown: choose a flow to see its own.
      const shown = list.slice(0, 12);
      const unit = shown[0].series.unit;
      const section = this.section(`${group}, ${unit}${list.length > 12 ? ` (12 of ${list.length})` : ""}`);
      const labels = shown.map(({ series, trace }) =>
        this.traces.length > 1 ? `${this.names[trace]}: ${series.name}` : series.name,
      );
      const lists = shown.map(({ series }) => series);
      const dashes = shown.map(({ trace }) => trace > 0);
      this.panels.push(new PlotPanel(section, group, lists, labels, dashes, this.store));
    }
    for (const panel of this.panels) panel.resize(this.width || this.parent.clientWidth || 600);
  }

  private section(title: string): HTMLElement {
    const section = document.createElement("section");
    section.className = "panel";
    const heading = document.createElement("h3");
    heading.textContent = title.trim();
    section.append(heading);
    this.parent.append(section);
    return section;
  }

  private draw(): void {
    if (this.store.shown.view === "exchange") return;
    const signature = `${this.store.shown.flow} ${document.documentElement.dataset.theme}`;
    if (signature !== this.signature) {
      this.signature = signature;
      this.build();
    }
    for (const panel of this.panels) panel.draw();
  }
}

/** A canvas over the time axis, with zooming and panning. */
abstract class CanvasPanel implements Panel {
  protected readonly canvas = document.createElement("canvas");
  protected readonly context: CanvasRenderingContext2D;
  protected width = 0;

  constructor(
    parent: HTMLElement,
    protected readonly trace: Trace,
    protected readonly store: Store,
    protected readonly height: number,
  ) {
    const context = this.canvas.getContext("2d");
    if (!context) throw new Error("this browser has no canvas");
    this.context = context;
    this.canvas.setAttribute("role", "img");
    parent.append(this.canvas);
    listen(this.canvas, store, (x) => this.timeAt(x));
  }

  resize(width: number): void {
    const ratio = window.devicePixelRatio || 1;
    this.width = width;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  protected x(time: number): number {
    const [from, until] = this.store.span();
    return LEFT + ((time - from) / (until - from)) * (this.width - LEFT - RIGHT);
  }

  protected timeAt(x: number): number {
    const [from, until] = this.store.span();
    return from + ((x - LEFT) / (this.width - LEFT - RIGHT)) * (until - from);
  }

  draw(): void {
    if (this.width < 60) return;
    const { context, store } = this;
    const colours = palette();
    const [from, until] = store.span();
    context.fillStyle = colours.background;
    context.fillRect(0, 0, this.width, this.height);
    this.paint(from, until);
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    const step = niceStep((until - from) / Math.max(2, this.width / 110));
    for (let time = Math.ceil(from / step) * step; time <= until; time += step) {
      const x = Math.round(this.x(time)) + 0.5;
      context.strokeStyle = colours.line;
      context.beginPath();
      context.moveTo(x, this.height - 18);
      context.lineTo(x, this.height - 14);
      context.stroke();
      context.fillStyle = colours.faint;
      context.fillText(axisLabel(time, step), x, this.height - 3);
    }
    if (store.cursor !== null && store.cursor >= from && store.cursor <= until) {
      const x = Math.round(this.x(store.cursor)) + 0.5;
      context.strokeStyle = colours.faint;
      context.setLineDash([2, 3]);
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, this.height - 18);
      context.stroke();
      context.setLineDash([]);
    }
  }

  protected label(text: string, y: number): void {
    this.context.fillStyle = palette().faint;
    this.context.font = "11px system-ui, sans-serif";
    this.context.textAlign = "right";
    this.context.fillText(text, LEFT - 6, y);
  }

  protected abstract paint(from: number, until: number): void;
}

/** Time and sequence number of every packet with data: sent, delivered, lost, sent again; acknowledgements as a line. */
class SequencePanel extends CanvasPanel {
  /** Of blocks: how many symbols came before each, by flow and block. */
  private readonly before = new Map<number, number>();
  private image?: ImageData;
  private low = 0;
  private high = 1;

  constructor(parent: HTMLElement, trace: Trace, store: Store, onSelect: (packet: number) => void) {
    super(parent, trace, store, 220);
    const { blocks } = trace;
    const order = [...blocks.number.keys()].sort(
      (a, b) => blocks.flow[a] - blocks.flow[b] || blocks.channel[a] - blocks.channel[b] || blocks.number[a] - blocks.number[b],
    );
    let sum = 0;
    let flow = -1;
    for (const i of order) {
      if (blocks.flow[i] !== flow) sum = 0;
      flow = blocks.flow[i];
      this.before.set(flow * 2 ** 32 + blocks.number[i], sum);
      sum += Math.max(blocks.k[i], 1);
    }
    this.canvas.addEventListener("click", (event) => {
      const packet = this.nearest(event.offsetX, event.offsetY);
      if (packet >= 0) onSelect(packet);
    });
  }

  private value(i: number): number {
    const before = this.before.get(this.trace.flow[i] * 2 ** 32 + this.trace.block[i]);
    return before === undefined ? this.trace.seq[i] : before + this.trace.seq[i];
  }

  private counts(i: number): boolean {
    const { trace, store } = this;
    const flow = store.shown.flow;
    return (
      trace.len[i] > 0 &&
      (flow === null || trace.flow[i] === flow) &&
      (trace.kind[i] <= Kind.Repair || trace.kind[i] === Kind.Opaque)
    );
  }

  private y(value: number): number {
    return this.height - 24 - ((value - this.low) / (this.high - this.low)) * (this.height - 34);
  }

  private nearest(x: number, y: number): number {
    const { trace } = this;
    const reach = (6 / (this.width - LEFT - RIGHT)) * (this.store.span()[1] - this.store.span()[0]);
    const time = this.timeAt(x);
    let best = -1;
    let least = 10;
    for (let i = lowerBound(trace.sent, time - reach); i < trace.count && trace.sent[i] <= time + reach; i++) {
      if (!this.counts(i)) continue;
      const distance = Math.hypot(this.x(trace.sent[i]) - x, this.y(this.value(i)) - y);
      if (distance < least) {
        least = distance;
        best = i;
      }
    }
    return best;
  }

  protected paint(from: number, until: number): void {
    const { trace, context, store } = this;
    const colours = palette();
    const [first, last] = underWay(trace, from, until);
    let low = Number.POSITIVE_INFINITY;
    let high = Number.NEGATIVE_INFINITY;
    for (let i = first; i < last; i++) {
      if (!this.counts(i)) continue;
      const value = this.value(i);
      if (value < low) low = value;
      if (value + trace.len[i] > high) high = value + trace.len[i];
    }
    if (low > high) {
      this.label("no data", 20);
      return;
    }
    this.low = low;
    this.high = high > low ? high : low + 1;
    // A pixel each, into memory: a million rectangles would take a second.
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [this.canvas.width, this.canvas.height];
    if (this.image?.width !== width || this.image.height !== height) this.image = context.createImageData(width, height);
    const pixels = new Uint32Array(this.image.data.buffer);
    pixels.fill(toPixel(colours.background));
    const ink = [...colours.list, colours.again, colours.lost].map(toPixel);
    const dot = (x: number, y: number, colour: number, size: number) => {
      const [left, top] = [Math.round(x * ratio), Math.round(y * ratio)];
      for (let dy = 0; dy < size; dy++) {
        const row = top + dy;
        if (row < 0 || row >= height) continue;
        for (let dx = 0; dx < size; dx++) {
          const column = left + dx;
          if (column >= LEFT * ratio && column < width) pixels[row * width + column] = colour;
        }
      }
    };
    const size = Math.max(1, Math.round((last - first < 20000 ? 3 : last - first < 100000 ? 2 : 1) * ratio));
    const { colour, marks, lost } = store.shown;
    const filtered = marks !== 0 || lost;
    const scale = (this.width - LEFT - RIGHT) / (until - from);
    const up = (this.height - 34) / (this.high - this.low);
    for (let i = first; i < last; i++) {
      if (!this.counts(i)) continue;
      const gone = isLost(trace, i);
      if (filtered && !((trace.mark[i] & marks) !== 0 || (lost && gone))) continue;
      const x = LEFT + (trace.sent[i] - from) * scale;
      const y = this.height - 24 - (this.value(i) - this.low) * up;
      if (gone) dot(x, y, ink[9], size + 1);
      else if (trace.mark[i] & Mark.Retransmitted) dot(x, y, ink[8], size + 1);
      else dot(x, y, ink[colourOf(trace, i, colour) & 7], size);
      // Delivered: paler, later.
      if (trace.fate[i] === 1 && trace.ended[i] < until) dot(LEFT + (trace.ended[i] - from) * scale, y, ink[2], 1);
    }
    context.putImageData(this.image, 0, 0);
    this.label(short(this.high), 14);
    this.label(short(this.low), this.height - 22);
    this.paintAcknowledged(first, last);
    context.strokeStyle = colours.select;
    for (const i of followed(trace, store.shown.follow).slice(0, 2000)) {
      context.strokeRect(this.x(trace.sent[i]) - 3, this.y(this.value(i)) - 3, 6, 6);
    }
    const title = `sequence numbers from ${seconds(from)} to ${seconds(until)}, of ${last - first} packets`;
    this.canvas.setAttribute("aria-label", title);
  }

  /** What was acknowledged, by the direction's receiver. */
  private paintAcknowledged(first: number, last: number): void {
    const { trace, context, store } = this;
    if (this.before.size) return;
    const flow = store.shown.flow;
    context.save();
    context.beginPath();
    context.rect(LEFT, 0, this.width - LEFT - RIGHT, this.height - 20);
    context.clip();
    context.strokeStyle = palette().list[2];
    context.beginPath();
    const heights = new Map<number, number>();
    let previous = -1;
    for (let i = first; i < last; i++) {
      if (trace.kind[i] !== Kind.Ack || trace.ack[i] === 0 || (flow !== null && trace.flow[i] !== flow)) continue;
      if (heights.get(trace.flow[i]) === trace.ack[i]) continue;
      const x = this.x(trace.ended[i]);
      const known = heights.get(trace.flow[i]);
      // A line finer than a pixel is not seen.
      if (x - previous < 0.5 && known !== undefined) continue;
      previous = x;
      const y = this.y(trace.ack[i]);
      if (known === undefined) context.moveTo(x, y);
      else {
        context.moveTo(x, this.y(known));
        context.lineTo(x, y);
      }
      heights.set(trace.flow[i], trace.ack[i]);
    }
    context.stroke();
    context.restore();
  }
}

/** Blocks: each from its first symbol to when enough were there; full where symbols were useless. */
class BlocksPanel extends CanvasPanel {
  constructor(parent: HTMLElement, trace: Trace, store: Store) {
    super(parent, trace, store, 150);
    this.canvas.addEventListener("click", (event) => {
      const { blocks } = trace;
      const time = this.timeAt(event.offsetX);
      const rows = this.rows();
      const row = Math.floor((event.offsetY - 6) / this.pitch(rows.length));
      const near = rows.filter((_, index) => Math.abs((rows.length > 60 ? index % 60 : index) - row) <= 1);
      const i = near.find((one) => blocks.begun[one] <= time && !(blocks.done[one] < time)) ?? near[0];
      if (i !== undefined) store.set({ follow: { what: "block", flow: blocks.flow[i], block: blocks.number[i] } });
    });
  }

  private rows(): number[] {
    const { blocks } = this.trace;
    const [from, until] = this.store.span();
    const flow = this.store.shown.flow;
    return [...blocks.number.keys()].filter(
      (i) => (flow === null || blocks.flow[i] === flow) && blocks.begun[i] < until && !(blocks.done[i] < from),
    );
  }

  private pitch(rows: number): number {
    return Math.min(14, (this.height - 30) / Math.max(1, Math.min(rows, 60)));
  }

  protected paint(from: number, until: number): void {
    const { trace, context, store } = this;
    const { blocks } = trace;
    const colours = palette();
    const rows = this.rows();
    const pitch = this.pitch(rows.length);
    const follow = store.shown.follow;
    rows.forEach((i, index) => {
      const y = 6 + (rows.length > 60 ? index % 60 : index) * pitch;
      const x0 = Math.max(LEFT, this.x(Math.max(blocks.begun[i], from)));
      const x1 = Math.min(this.width - RIGHT, this.x(Math.min(Number.isNaN(blocks.done[i]) ? until : blocks.done[i], until)));
      const chosen = follow?.what === "block" && follow.flow === blocks.flow[i] && follow.block === blocks.number[i];
      context.fillStyle = colours.list[blocks.number[i] % 8];
      context.globalAlpha = chosen ? 1 : 0.75;
      context.fillRect(x0, y, Math.max(1.5, x1 - x0), Math.max(1, pitch - 1.5));
      context.globalAlpha = 1;
      if (Number.isNaN(blocks.done[i]) || blocks.done[i] > until) return;
      if (blocks.useless[i] > 0) {
        context.fillStyle = colours.lost;
        context.fillRect(x1 - 1, y, 3, Math.max(1, pitch - 1.5));
      }
      if (pitch >= 10 && x1 - x0 > 110) {
        context.fillStyle = colours.background;
        context.font = "10px system-ui, sans-serif";
        context.textAlign = "left";
        const text = `block ${blocks.number[i]}: ${blocks.received[i]} of ${blocks.k[i]} symbols, ${blocks.useless[i]} useless`;
        context.fillText(text, x0 + 4, y + pitch - 4, x1 - x0 - 8);
      }
    });
    this.label(`${rows.length} blocks`, 16);
    this.canvas.setAttribute("aria-label", `${rows.length} blocks of symbols, from their first symbol until enough had arrived`);
  }
}

/** Series of one group. */
class PlotPanel implements Panel {
  private readonly plot: uPlot;
  private readonly data: uPlot.AlignedData;
  private drawn = "";

  constructor(
    parent: HTMLElement,
    group: string,
    private readonly series: Series[],
    labels: string[],
    dashes: boolean[],
    private readonly store: Store,
  ) {
    const colours = palette();
    this.data = align(series);
    const axis = { stroke: colours.faint, grid: { stroke: colours.line, width: 1 }, ticks: { stroke: colours.line } };
    this.plot = new uPlot(
      {
        width: 600,
        height: 140,
        padding: [6, RIGHT, 0, 0],
        cursor: { drag: { x: false, y: false }, points: { size: 5 }, sync: { key: "time" }, y: false },
        legend: { live: true },
        scales: { x: { time: false, auto: false }, y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.05 : 1] } },
        axes: [
          { ...axis, size: 28, values: (_u, all) => all.map((t) => `${Number(t.toFixed(9))}`), font: "11px system-ui" },
          { ...axis, size: LEFT, values: (_u, all) => all.map((v) => short(v)), font: "11px system-ui" },
        ],
        series: [
          { label: "s", value: (_u, t) => (t === null ? "–" : t.toFixed(6)) },
          ...labels.map((label, index) => ({
            label,
            stroke: colours.list[index % 8],
            dash: dashes[index] ? [6, 3] : undefined,
            width: 1.3,
            points: { show: false },
            spanGaps: true,
            paths: group === "Queue" || group === "Round-trip time" ? undefined : uPlot.paths.stepped?.({ align: 1 }),
            value: (_u: uPlot, v: number | null) => (v === null ? "–" : short(v)),
          })),
        ],
      },
      this.data,
      parent,
    );
    this.plot.over.setAttribute("role", "img");
    this.plot.over.setAttribute("aria-label", `${group} over time: ${labels.join(", ")}`);
    listen(this.plot.over, store, (x) => {
      const [from, until] = store.span();
      return from + (x / this.plot.over.clientWidth) * (until - from);
    });
  }

  resize(width: number): void {
    this.plot.setSize({ width, height: 140 });
    this.drawn = "";
  }

  draw(): void {
    const [from, until] = this.store.span();
    const key = `${from} ${until}`;
    if (key !== this.drawn) {
      this.drawn = key;
      this.plot.setScale("x", { min: from / 1e9, max: until / 1e9 });
    }
    const cursor = this.store.cursor;
    if (cursor !== null) this.plot.setCursor({ left: this.plot.valToPos(cursor / 1e9, "x"), top: 10 }, false);
    else if ((this.plot.cursor.left ?? -1) >= 0) this.plot.setCursor({ left: -10, top: -10 }, false);
    void this.series;
  }
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

/** Zooming with the wheel, panning with the pointer, and the cursor. */
function listen(element: HTMLElement, store: Store, timeAt: (x: number) => number): void {
  let drag: number | null = null;
  element.addEventListener(
    "wheel",
    (event) => {
      // With shift, and sideways, it moves; without, a page that is longer than the window scrolls only with alt.
      if (event.altKey) return;
      event.preventDefault();
      const time = timeAt(event.offsetX);
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        store.pan((timeAt(1) - timeAt(0)) * (event.deltaX || event.deltaY));
      } else store.zoomAbout(time, Math.exp(event.deltaY * 0.0015));
    },
    { passive: false },
  );
  element.addEventListener("pointerdown", (event) => {
    drag = event.offsetX;
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => {
    if (drag !== null) {
      store.pan(timeAt(drag) - timeAt(event.offsetX));
      drag = event.offsetX;
    } else store.point(timeAt(event.offsetX));
  });
  element.addEventListener("pointerup", () => {
    drag = null;
  });
  element.addEventListener("pointerleave", () => store.point(null));
}

function toPixel(colour: string): number {
  const value = Number.parseInt(colour.slice(1), 16);
  return 0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16);
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
