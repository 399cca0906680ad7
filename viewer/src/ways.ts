/**
 * A swarm in the exchange view: a column for each node, time downwards, and a bar for each block
 * from its beginning to its end, in the colour of who sent it.
 */

import { colourOf, isLost, palette } from "./colours";
import type { Store } from "./state";
import { isOf, lowerBound, Mark, type Trace, underWay } from "./trace";

/** Fewer bars are drawn one by one; of more, pixels are. */
const MOST_BARS = 6000;
/** Fewer have a line to who sent them. */
const MOST_LINKS = 120;
/** Narrower columns show their blocks in front of each other. */
const NARROW = 4;
/** A name needs so much room. */
const NAME = 64;

export interface Frame {
  left: number;
  width: number;
  top: number;
  height: number;
  ratio: number;
}

/** Whether a trace is of a swarm. */
export const isSwarm = (trace: Trace): boolean => trace.lanes[0]?.kind === "node";

export class Ways {
  /** The most blocks that come to a node at once. */
  private readonly places: number;

  constructor(
    private readonly trace: Trace,
    private readonly store: Store,
  ) {
    let most = 0;
    for (let i = 0; i < trace.count; i++) if (trace.path[i] > most) most = trace.path[i];
    this.places = most + 1;
  }

  private column({ width }: Frame): number {
    return width / this.trace.lanes.length;
  }

  /** The middle of a node's column. */
  x(lane: number, frame: Frame): number {
    return frame.left + (lane + 0.5) * this.column(frame);
  }

  private y(time: number, { top, height }: Frame): number {
    const [from, until] = this.store.span();
    return top + ((time - from) / (until - from)) * height;
  }

  /** The left edge of a block's bar, and its width. */
  private bar(i: number, frame: Frame): [number, number] {
    const column = this.column(frame);
    const x = frame.left + this.trace.to[i] * column;
    if (column < NARROW) return [x, column];
    const width = (column - 1) / this.places;
    return [x + this.trace.path[i] * width, width];
  }

  /** The corners of a block's bar: left, top, width, height. */
  box(i: number, frame: Frame): [number, number, number, number] {
    const [x, width] = this.bar(i, frame);
    const y = this.y(this.trace.sent[i], frame);
    return [x, y, width, Math.max(1, this.y(this.trace.ended[i], frame) - y)];
  }

  /** Draws the blocks that were under way; how many, and whether pixels stand for them. */
  draw(context: CanvasRenderingContext2D, frame: Frame): { count: number; far: boolean } {
    const { trace, store } = this;
    const [from, until] = store.span();
    const [first, last] = underWay(trace, from, until);
    const visible: number[] = [];
    for (let i = first; i < last; i++) {
      if (isOf(trace, i, store.shown) && !(trace.ended[i] < from)) visible.push(i);
    }
    const far = visible.length > MOST_BARS;
    if (far) this.pixels(context, frame, visible);
    else this.bars(context, frame, visible);
    return { count: visible.length, far };
  }

  private colour(i: number): string {
    const colours = palette();
    if (isLost(this.trace, i)) return colours.lost;
    return colours.list[colourOf(this.trace, i, this.store.shown.colour) % colours.list.length];
  }

  /** Whether a filter leaves it bright. */
  private isChosen(i: number): boolean {
    const { marks, lost } = this.store.shown;
    if (marks === 0 && !lost) return true;
    return (this.trace.mark[i] & marks) !== 0 || (lost && isLost(this.trace, i));
  }

  private bars(context: CanvasRenderingContext2D, frame: Frame, visible: number[]): void {
    const { trace } = this;
    const links = visible.length <= MOST_LINKS;
    for (const i of visible) {
      const [x, y, width, height] = this.box(i, frame);
      context.fillStyle = this.colour(i);
      context.globalAlpha = this.isChosen(i) ? 0.85 : 0.15;
      context.fillRect(x, y, Math.max(0.7, width - 0.6), Math.max(1, height - 0.6));
      if (trace.mark[i] & Mark.Useless) {
        context.fillStyle = palette().lost;
        context.fillRect(x, y + height - 3, width, 3);
      }
      if (!links) continue;
      context.strokeStyle = context.fillStyle;
      context.globalAlpha *= 0.6;
      context.beginPath();
      context.moveTo(this.x(trace.from[i], frame), y);
      context.lineTo(x + (trace.from[i] < trace.to[i] ? 0 : width), y);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** The same of very many, pixel by pixel. */
  private pixels(context: CanvasRenderingContext2D, frame: Frame, visible: number[]): void {
    const { ratio } = frame;
    const [width, height] = [Math.round(frame.width * ratio), Math.round(frame.height * ratio)];
    if (width < 1 || height < 1) return;
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const packed = new Map<string, number>();
    const pack = (colour: string): number => {
      const known = packed.get(colour);
      if (known !== undefined) return known;
      const [r, g, b] = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
      const value = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
      packed.set(colour, value);
      return value;
    };
    const rest = this.store.shown.marks !== 0 || this.store.shown.lost ? pack(palette().line) : 0;
    pixels.fill(pack(palette().background));
    // What is bright lies above.
    for (const bright of rest ? [false, true] : [true]) {
      for (const i of visible) {
        if (rest && this.isChosen(i) !== bright) continue;
        const value = bright ? pack(this.colour(i)) : rest;
        const [x, y, w, h] = this.box(i, frame);
        const x0 = Math.max(0, Math.floor((x - frame.left) * ratio));
        const x1 = Math.min(width, Math.max(x0 + 1, Math.floor((x + w - frame.left) * ratio)));
        const y0 = Math.max(0, Math.floor((y - frame.top) * ratio));
        const y1 = Math.min(height, Math.max(y0 + 1, Math.floor((y + h - frame.top) * ratio)));
        for (let row = y0; row < y1; row++) pixels.fill(value, row * width + x0, row * width + x1);
      }
    }
    context.putImageData(image, Math.round(frame.left * ratio), Math.round(frame.top * ratio));
  }

  /** The names above the columns, and lines between them where there is room. */
  heads(context: CanvasRenderingContext2D, frame: Frame): void {
    const colours = palette();
    const column = this.column(frame);
    context.textAlign = "center";
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = colours.ink;
    const step = Math.max(1, Math.ceil(NAME / column));
    this.trace.lanes.forEach(({ name }, lane) => {
      if (column >= 3 * NARROW) {
        const x = Math.round(frame.left + lane * column) - 0.5;
        context.strokeStyle = colours.line;
        context.beginPath();
        context.moveTo(x, frame.top - 6);
        context.lineTo(x, frame.top + frame.height);
        context.stroke();
      }
      if (lane % step !== 0) return;
      const room = step * column - 8;
      const half = Math.min(context.measureText(name).width, room) / 2;
      // At the right margin a name leans inwards.
      const x = Math.min(this.x(lane, frame), frame.left + frame.width - half);
      context.fillText(name, x, frame.top - 18, room);
    });
  }

  /** The block at a place, or -1. */
  hit(x: number, y: number, frame: Frame): number {
    const { trace, store } = this;
    const lane = Math.floor((x - frame.left) / this.column(frame));
    const [from, until] = store.span();
    const time = from + ((y - frame.top) / frame.height) * (until - from);
    let best = -1;
    const first = lowerBound(trace.sent, time - trace.longest);
    for (let i = first; i < trace.count && trace.sent[i] <= time; i++) {
      if (trace.to[i] !== lane || !(trace.ended[i] >= time) || !isOf(trace, i, store.shown)) continue;
      const [left, width] = this.bar(i, frame);
      best = i;
      if (x >= left && x < left + width) break;
    }
    return best;
  }
}
