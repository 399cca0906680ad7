/**
 * Time and sequence number of every packet with data: sent, delivered, lost, retransmitted. A line
 * shows the acknowledged or decoded data.
 */

import { niceStep } from "./axis";
import { BlockIndex } from "./blocks";
import { colourOf, isLost, palette } from "./colours";
import { followed } from "./exchange";
import { CanvasPanel, LEFT, RIGHT } from "./panel";
import { short } from "./plot";
import type { Store } from "./state";
import { Fate, isOf, Kind, lowerBound, Mark, seconds, type Trace, underWay } from "./trace";

const HEIGHT = 220;
const TOP = 10;
const BOTTOM = 24;

export class SequencePanel extends CanvasPanel {
  private readonly index: BlockIndex;
  /** Of each flow: the lanes that sent data. */
  private readonly senders = new Map<number, Set<number>>();
  private image?: ImageData;
  private low = 0;
  private high = 1;

  constructor(
    parent: HTMLElement,
    trace: Trace,
    /** Of the flows that count in this. */
    private readonly unit: string,
    store: Store,
    onSelect: (packet: number) => void,
  ) {
    super(parent, trace, store, HEIGHT);
    this.index = BlockIndex.of(trace);
    for (let i = 0; i < trace.count; i++) {
      if (trace.len[i] === 0 || !isData(trace, i)) continue;
      const lanes = this.senders.get(trace.flow[i]);
      if (lanes) lanes.add(trace.from[i]);
      else this.senders.set(trace.flow[i], new Set([trace.from[i]]));
    }
    this.canvas.addEventListener("click", (event) => {
      const packet = this.nearest(event.offsetX, event.offsetY);
      if (packet >= 0) onSelect(packet);
    });
  }

  private value(i: number): number {
    const row = this.index.row[i];
    return row < 0 ? this.trace.seq[i] : this.index.before[row] + this.trace.seq[i];
  }

  private counts(i: number): boolean {
    const { trace, store } = this;
    return trace.len[i] > 0 && isData(trace, i) && isOf(trace, i, store.shown) && trace.flows[trace.flow[i]]?.unit === this.unit;
  }

  private y(value: number): number {
    return this.height - BOTTOM - ((value - this.low) / (this.high - this.low)) * (this.height - BOTTOM - TOP);
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
    this.paintPackets(from, until, first, last);
    const step = niceStep((this.high - this.low) / 4);
    for (let value = Math.ceil(this.low / step) * step; value <= this.high; value += step) {
      const y = this.y(value);
      this.label(short(value), y + 4);
      context.strokeStyle = colours.line;
      context.globalAlpha = 0.5;
      context.beginPath();
      context.moveTo(LEFT, Math.round(y) + 0.5);
      context.lineTo(this.width - RIGHT, Math.round(y) + 0.5);
      context.stroke();
      context.globalAlpha = 1;
    }
    this.clip();
    context.strokeStyle = colours.list[2];
    context.lineWidth = 1.3;
    context.beginPath();
    this.tracePath(first, last, until);
    context.stroke();
    context.lineWidth = 1;
    context.strokeStyle = colours.select;
    for (const i of followed(trace, store.shown.follow).slice(0, 2000)) {
      context.strokeRect(this.x(trace.sent[i]) - 3, this.y(this.value(i)) - 3, 6, 6);
    }
    context.restore();
    const title = `sequence numbers from ${seconds(from)} to ${seconds(until)}, of ${last - first} packets`;
    this.canvas.setAttribute("aria-label", title);
  }

  /** A pixel each, into memory: a million rectangles would take a second. */
  private paintPackets(from: number, until: number, first: number, last: number): void {
    const { trace, context, store } = this;
    const colours = palette();
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
    for (let i = first; i < last; i++) {
      if (!this.counts(i)) continue;
      const gone = isLost(trace, i);
      if (filtered && !((trace.mark[i] & marks) !== 0 || (lost && gone))) continue;
      const x = LEFT + (trace.sent[i] - from) * scale;
      const y = this.y(this.value(i));
      // Delivered: smaller, later.
      if (trace.fate[i] === Fate.Arrived && trace.ended[i] < until) dot(LEFT + (trace.ended[i] - from) * scale, y, ink[2], 1);
      if (gone) dot(x, y, ink[9], size + 1);
      else if (trace.mark[i] & Mark.Retransmitted) dot(x, y, ink[8], size + 1);
      else dot(x, y, ink[colourOf(trace, i, colour) & 7], size);
    }
    context.putImageData(this.image, 0, 0);
  }

  /** By flow: what was acknowledged, or decoded where there are blocks. */
  private tracePath(first: number, last: number, until: number): void {
    const { trace } = this;
    const { flow } = this.store.shown;
    if (this.unit === "symbols") {
      for (const [index, { unit }] of trace.flows.entries()) {
        if (unit === this.unit && (flow === null || flow === index)) this.traceDecoded(index, until);
      }
      return;
    }
    const lines = new Map<number, Step>();
    for (let i = first; i < last; i++) {
      if (trace.ack[i] === 0 || trace.fate[i] === Fate.Lost || Number.isNaN(trace.ended[i])) continue;
      const index = trace.flow[i];
      if (flow !== null && index !== flow) continue;
      // Who sends no data is acknowledged nothing.
      if (trace.flows[index]?.unit !== this.unit || !this.senders.get(index)?.has(trace.to[i])) continue;
      const key = index * 256 + trace.to[i];
      let line = lines.get(key);
      if (!line) {
        line = new Step();
        lines.set(key, line);
      }
      line.to(this.x(trace.ended[i]), this.y(trace.ack[i]));
    }
    for (const line of lines.values()) line.draw(this.context);
  }

  private traceDecoded(flow: number, until: number): void {
    const line = new Step();
    for (const { time, symbols } of this.index.decoded(this.trace, flow)) {
      if (time > until) break;
      line.to(this.x(time), this.y(symbols));
    }
    line.draw(this.context);
  }
}

/** A line of steps, of which those finer than a pixel are left out. */
class Step {
  private readonly points: [number, number][] = [];

  to(x: number, y: number): void {
    const last = this.points.at(-1);
    // What says less than what was said before came late.
    if (!last || (y < last[1] && x - last[0] >= 0.5)) this.points.push([x, y]);
    else if (y < last[1]) last[1] = y;
  }

  /** Lines of several flows go on at the same time: each is drawn by itself. */
  draw(context: CanvasRenderingContext2D): void {
    this.points.forEach(([x, y], index) => {
      if (index === 0) context.moveTo(x, y);
      else {
        context.lineTo(x, this.points[index - 1][1]);
        context.lineTo(x, y);
      }
    });
  }
}

const isData = (trace: Trace, i: number): boolean => trace.kind[i] <= Kind.Repair || trace.kind[i] === Kind.Opaque;

function toPixel(colour: string): number {
  const value = Number.parseInt(colour.slice(1), 16);
  return 0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16);
}
