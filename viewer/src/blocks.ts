/** Blocks of symbols: which packet belongs to which, and how each came to be complete. */

import { palette } from "./colours";
import { CanvasPanel } from "./panel";
import type { Store } from "./state";
import { Fate, Kind, type Trace } from "./trace";

/** A trace's blocks, by row of its table, and the packets of each. */
export class BlockIndex {
  /** Of each packet: the row of its block, or -1. */
  readonly row: Int32Array;
  /** Symbols of the flow's blocks before each row's. */
  readonly before: Float64Array;
  private readonly first: Uint32Array;
  private readonly packets: Uint32Array;

  private constructor(trace: Trace) {
    const { blocks } = trace;
    const count = blocks.number.length;
    const rows = new Map<number, Map<number, number>>();
    for (let i = 0; i < count; i++) {
      const key = blocks.flow[i] * 65536 + Math.min(blocks.channel[i], 65535);
      const channel = rows.get(key) ?? new Map<number, number>();
      rows.set(key, channel);
      channel.set(blocks.number[i], i);
    }
    this.row = new Int32Array(trace.count).fill(-1);
    this.first = new Uint32Array(count + 1);
    this.before = new Float64Array(count);
    for (let i = 0; count && i < trace.count; i++) {
      if (trace.kind[i] > Kind.Repair || trace.len[i] === 0) continue;
      const row = rows.get(trace.flow[i] * 65536 + trace.channel[i])?.get(trace.block[i]) ?? -1;
      this.row[i] = row;
      if (row >= 0) this.first[row + 1]++;
    }
    for (let row = 0; row < count; row++) this.first[row + 1] += this.first[row];
    this.packets = new Uint32Array(this.first[count]);
    const next = this.first.slice();
    for (let i = 0; count && i < trace.count; i++) {
      if (this.row[i] >= 0) this.packets[next[this.row[i]]++] = i;
    }
    let sum = 0;
    // The table lies in the order of flows, channels and numbers.
    for (let row = 0; row < count; row++) {
      if (row && blocks.flow[row] !== blocks.flow[row - 1]) sum = 0;
      this.before[row] = sum;
      sum += Math.max(blocks.k[row], 1);
    }
  }

  private static readonly known = new WeakMap<Trace, BlockIndex>();

  static of(trace: Trace): BlockIndex {
    const known = BlockIndex.known.get(trace);
    if (known) return known;
    const index = new BlockIndex(trace);
    BlockIndex.known.set(trace, index);
    return index;
  }

  /** The packets of a block, in the order in which they left. */
  of(row: number): Uint32Array {
    return this.packets.subarray(this.first[row], this.first[row + 1]);
  }

  /** A flow's symbols that were decoded: when each block was, and how many there were then. */
  decoded(trace: Trace, flow: number): { time: number; symbols: number }[] {
    const { blocks } = trace;
    const done = [...blocks.number.keys()].filter((row) => blocks.flow[row] === flow && !Number.isNaN(blocks.done[row]));
    done.sort((a, b) => blocks.done[a] - blocks.done[b]);
    let symbols = 0;
    return done.map((row) => {
      symbols += Math.max(blocks.k[row], 1);
      return { time: blocks.done[row], symbols };
    });
  }
}

/** Of more rows than this some are left out: a pixel has room for one. */
const MOST_ROWS = 1200;

/** A bar for each block, from its first symbol to its last needed one; symbols fill it. */
export class BlocksPanel extends CanvasPanel {
  constructor(parent: HTMLElement, trace: Trace, store: Store) {
    super(parent, trace, store, 150);
    this.canvas.addEventListener("click", (event) => {
      const rows = this.rows();
      const row = rows[Math.floor((event.offsetY - 6) / this.pitch(rows.length))];
      if (row === undefined) return;
      const { blocks } = trace;
      store.set({ follow: { what: "block", flow: blocks.flow[row], channel: blocks.channel[row], block: blocks.number[row] } });
    });
  }

  private rows(): number[] {
    const { blocks } = this.trace;
    const [from, until] = this.store.span();
    const flow = this.store.shown.flow;
    const rows: number[] = [];
    for (let i = 0; i < blocks.number.length; i++) {
      if ((flow === null || blocks.flow[i] === flow) && blocks.begun[i] < until && !(blocks.done[i] < from)) rows.push(i);
    }
    const step = Math.ceil(rows.length / MOST_ROWS);
    return step > 1 ? rows.filter((_, index) => index % step === 0) : rows;
  }

  private pitch(rows: number): number {
    return Math.min(14, (this.height - 30) / Math.max(1, rows));
  }

  protected paint(from: number, until: number): void {
    const { trace, context, store } = this;
    const { blocks } = trace;
    const colours = palette();
    const rows = this.rows();
    const pitch = this.pitch(rows.length);
    const { follow } = store.shown;
    this.clip();
    rows.forEach((i, index) => {
      const y = 6 + index * pitch;
      const height = Math.max(1, pitch - (pitch > 4 ? 1.5 : 0));
      const isDone = !Number.isNaN(blocks.done[i]);
      const x0 = this.x(Math.max(blocks.begun[i], from));
      const x1 = this.x(Math.min(isDone ? blocks.done[i] : until, until));
      const chosen =
        follow?.what === "block" &&
        follow.flow === blocks.flow[i] &&
        follow.channel === blocks.channel[i] &&
        follow.block === blocks.number[i];
      context.fillStyle = colours.list[blocks.number[i] % 8];
      const isDetailed = pitch >= 4;
      context.globalAlpha = isDetailed ? 0.25 : 0.8;
      context.fillRect(x0, y, Math.max(1.5, x1 - x0), height);
      context.globalAlpha = chosen ? 1 : 0.8;
      if (isDetailed) this.progress(i, y, height, x1);
      context.globalAlpha = 1;
      if (chosen) {
        context.strokeStyle = colours.select;
        context.strokeRect(x0, y, Math.max(1.5, x1 - x0), height);
      }
      if (pitch >= 10) {
        context.fillStyle = colours.ink;
        context.font = "10px system-ui, sans-serif";
        context.textAlign = "left";
        const useless = blocks.useless[i] ? `, ${blocks.useless[i]} useless` : "";
        const needed = blocks.k[i] ? ` of ${blocks.k[i]}` : "";
        const text = `block ${blocks.number[i]}: ${blocks.received[i]}${needed} symbols${useless}`;
        const width = context.measureText(text).width;
        if (x1 - x0 > width + 8) context.fillText(text, x0 + 4, y + pitch - 4);
        else if (x1 + width + 8 < this.width) context.fillText(text, x1 + 4, y + pitch - 4);
        else context.fillText(text, x0 - width - 4, y + pitch - 4);
      }
    });
    context.restore();
    const count = rows.length === 1 ? "1 block" : `${rows.length} blocks`;
    this.label(count, 16);
    this.canvas.setAttribute("aria-label", `${count} of symbols, from their first symbol until enough had arrived`);
  }

  /** Symbols received against needed, as a height. */
  private progress(row: number, y: number, height: number, end: number): void {
    const { trace, context } = this;
    const arrived = [...BlockIndex.of(trace).of(row)].filter((i) => trace.fate[i] === Fate.Arrived);
    arrived.sort((a, b) => trace.ended[a] - trace.ended[b]);
    const seen = arrived.reduce((sum, i) => sum + trace.len[i], 0);
    const received = trace.blocks.received[row];
    const needed = trace.blocks.k[row] || received;
    if (!seen || !needed) return;
    // Where packets were thinned out, those that are there stand for the others.
    const each = Math.max(1, received / seen) / needed;
    context.beginPath();
    let sum = 0;
    context.moveTo(this.x(trace.ended[arrived[0]]), y + height);
    for (const i of arrived) {
      const x = Math.min(this.x(trace.ended[i]), end);
      context.lineTo(x, y + height * (1 - Math.min(1, sum)));
      sum += trace.len[i] * each;
      context.lineTo(x, y + height * (1 - Math.min(1, sum)));
    }
    context.lineTo(end, y + height * (1 - Math.min(1, sum)));
    context.lineTo(end, y + height);
    context.fill();
  }
}
