/**
 * The exchange view: hosts and queues as vertical lines, time downwards, every packet a line from
 * its departure to its end.
 */

import { axisLabel, niceStep } from "./axis";
import { colourOf, isLost, palette } from "./colours";
import { drawDensity } from "./density";
import type { Store } from "./state";
import { Fate, hopsOf, isOf, Mark, NOWHERE, seconds, type Trace, underWay } from "./trace";
import { type Frame, isSwarm, Ways } from "./ways";

const HEAD = 44;
const FOOT = 8;
const LEFT = 84;
const RIGHT = 60;
/** The most lines in a pixel's height; above it, the number of packets is shown instead. */
const MOST_IN_A_PIXEL = 1.6;
const MOST_LINES = 5000;
const MOST_DASHED = 1200;
/** So near must the pointer be, in pixels. */
const NEAR = 7;

export class ExchangeView {
  readonly canvas: HTMLCanvasElement;
  private readonly context: CanvasRenderingContext2D;
  private width = 0;
  private height = 0;
  private lanes: number[] = [];
  private laneOf = new Map<number, number>();
  private visible: number[] = [];
  private hovered = -1;
  private flowOfLanes: number | null | undefined = undefined;
  /** Of a swarm, what draws it. */
  private ways?: Ways;

  constructor(
    parent: HTMLElement,
    private trace: Trace,
    private readonly store: Store,
    private readonly name: string,
    private readonly onHover: (packet: number, x: number, y: number) => void,
    private readonly onSelect: (packet: number) => void,
  ) {
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    parent.append(this.canvas);
    const context = this.canvas.getContext("2d");
    if (!context) throw new Error("this browser has no canvas");
    this.context = context;
    this.ways = isSwarm(trace) ? new Ways(trace, store) : undefined;
    new ResizeObserver(() => this.resize()).observe(parent);
    this.listen();
    store.onDraw(() => this.draw());
  }

  /** Shows another trace. */
  show(trace: Trace): void {
    this.trace = trace;
    this.ways = isSwarm(trace) ? new Ways(trace, this.store) : undefined;
    this.flowOfLanes = undefined;
    this.hovered = -1;
    this.store.request();
  }

  private resize(): void {
    const box = this.canvas.parentElement?.getBoundingClientRect();
    if (!box || box.width < 1) return;
    const ratio = window.devicePixelRatio || 1;
    this.width = box.width;
    this.height = box.height;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.canvas.style.width = `${box.width}px`;
    this.canvas.style.height = `${box.height}px`;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.store.request();
  }

  /** The lanes that are shown: those of one flow, or all. */
  private chooseLanes(): void {
    const flow = this.store.shown.flow;
    if (this.flowOfLanes === flow) return;
    this.flowOfLanes = flow;
    const used = new Set<number>();
    const { trace } = this;
    if (flow !== null) {
      for (let i = 0; i < trace.count; i++) {
        if (trace.flow[i] !== flow) continue;
        used.add(trace.from[i]).add(trace.to[i]);
        if (trace.place[i] !== NOWHERE) used.add(trace.place[i]);
      }
      for (let i = 0; i < trace.hopPacket.length; i++) {
        if (trace.flow[trace.hopPacket[i]] === flow) used.add(trace.hopLane[i]);
      }
    }
    const all = trace.lanes.map((_, index) => index);
    this.lanes = used.size ? all.filter((lane) => used.has(lane)) : all;
    this.laneOf = new Map(this.lanes.map((lane, index) => [lane, index]));
  }

  private x(lane: number): number {
    const index = this.laneOf.get(lane) ?? 0;
    const gaps = Math.max(1, this.lanes.length - 1);
    return LEFT + (index / gaps) * (this.width - LEFT - RIGHT);
  }

  private frame(): Frame {
    const ratio = window.devicePixelRatio || 1;
    return { left: LEFT, width: this.width - LEFT - 10, top: HEAD, height: this.height - HEAD - FOOT, ratio };
  }

  private y(time: number): number {
    const [from, until] = this.store.span();
    return HEAD + ((time - from) / (until - from)) * (this.height - HEAD - FOOT);
  }

  private timeAt(y: number): number {
    const [from, until] = this.store.span();
    return from + ((y - HEAD) / (this.height - HEAD - FOOT)) * (until - from);
  }

  draw(): void {
    if (this.width < 10 || this.store.shown.view === "timeline") return;
    this.chooseLanes();
    const colours = palette();
    const { context, trace, store } = this;
    const [from, until] = store.span();
    context.fillStyle = colours.background;
    context.fillRect(0, 0, this.width, this.height);
    this.drawAxis();
    if (this.ways) {
      this.drawSwarm(this.ways, from, until);
      return;
    }
    const [first, last] = underWay(trace, from, until);
    context.save();
    context.beginPath();
    context.rect(0, HEAD, this.width, this.height - HEAD);
    context.clip();
    this.visible = [];
    const most = Math.min(MOST_LINES, Math.max(400, (this.height - HEAD) * MOST_IN_A_PIXEL));
    let count = 0;
    for (let i = first; i < last; i++) {
      if (!isOf(trace, i, store.shown)) continue;
      if (!(trace.ended[i] < from)) {
        count++;
        if (count <= most) this.visible.push(i);
      }
    }
    const far = count > most;
    if (far) {
      this.visible = [];
      drawDensity(context, trace, store, [first, last], this.height - HEAD - FOOT, HEAD, (lane) => this.x(lane));
    } else {
      this.drawLines();
    }
    this.drawFollowed();
    this.drawCursor();
    context.restore();
    this.drawLanes();
    const what = far ? "how many packets left, by time" : `${count} packets`;
    const label = `${this.name}: exchange between ${this.lanes.length} lanes from ${seconds(from)} to ${seconds(until)}, ${what}`;
    this.canvas.setAttribute("aria-label", label);
    this.canvas.dataset.packets = String(count);
    this.canvas.dataset.mode = far ? "density" : "lines";
  }

  /** Nodes that feed each other, in place of packets between hosts. */
  private drawSwarm(ways: Ways, from: number, until: number): void {
    const { context, trace, store } = this;
    const frame = this.frame();
    context.save();
    context.beginPath();
    context.rect(0, HEAD, this.width, this.height - HEAD);
    context.clip();
    const { count, far } = ways.draw(context, frame);
    context.strokeStyle = palette().select;
    context.lineWidth = 2;
    for (const i of new Set([...followed(trace, store.shown.follow).slice(0, MOST_LINES), this.hovered])) {
      if (i >= 0 && i < trace.count) context.strokeRect(...ways.box(i, frame));
    }
    context.lineWidth = 1;
    this.drawCursor();
    context.restore();
    context.fillStyle = palette().background;
    context.fillRect(0, 0, this.width, HEAD - 7);
    ways.heads(context, frame);
    const label = `${this.name}: who fed each of ${trace.lanes.length} nodes from ${seconds(from)} to ${seconds(until)}, ${count} blocks`;
    this.canvas.setAttribute("aria-label", label);
    this.canvas.dataset.packets = String(count);
    this.canvas.dataset.mode = far ? "density" : "bars";
  }

  private drawCursor(): void {
    const { context, store } = this;
    if (store.cursor === null) return;
    context.strokeStyle = palette().faint;
    context.setLineDash([2, 3]);
    context.beginPath();
    const y = Math.round(this.y(store.cursor)) + 0.5;
    context.moveTo(LEFT - 10, y);
    context.lineTo(this.width - 10, y);
    context.stroke();
    context.setLineDash([]);
  }

  private drawAxis(): void {
    const { context } = this;
    const colours = palette();
    const [from, until] = this.store.span();
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.textBaseline = "middle";
    const step = niceStep((until - from) / Math.max(2, this.height / 70));
    for (let time = Math.ceil(from / step) * step; time <= until; time += step) {
      const y = Math.round(this.y(time)) + 0.5;
      context.strokeStyle = colours.line;
      context.beginPath();
      context.moveTo(LEFT - 6, y);
      context.lineTo(this.width - 10, y);
      context.stroke();
      context.fillStyle = colours.faint;
      context.fillText(axisLabel(time, step), LEFT - 12, y);
    }
  }

  private drawLanes(): void {
    const { context, trace } = this;
    const colours = palette();
    context.fillStyle = colours.background;
    context.fillRect(0, 0, this.width, HEAD - 7);
    context.textAlign = "center";
    const room = (this.width - LEFT - RIGHT) / Math.max(1, this.lanes.length - 1);
    this.lanes.forEach((lane, index) => {
      const x = Math.round(this.x(lane)) + 0.5;
      const { name, kind } = trace.lanes[lane];
      context.strokeStyle = kind === "host" ? colours.ink : colours.faint;
      context.setLineDash(kind === "host" ? [] : [3, 4]);
      context.lineWidth = kind === "host" ? 1.5 : 1;
      context.beginPath();
      context.moveTo(x, HEAD - 6);
      context.lineTo(x, this.height);
      context.stroke();
      context.setLineDash([]);
      context.lineWidth = 1;
      context.fillStyle = kind === "host" ? colours.ink : colours.faint;
      context.font = kind === "host" ? "600 12px system-ui, sans-serif" : "12px system-ui, sans-serif";
      // Neighbours that are long take turns.
      const y = room < 110 && index % 2 ? 12 : 26;
      const width = Math.max(40, (room < 110 ? 2 : 1) * room - 8);
      // At the margins a name leans inwards.
      const half = Math.min(context.measureText(name).width, width) / 2;
      const at = Math.min(Math.max(x, half + 4), this.width - half - 4);
      context.fillText(name, at, y, width);
    });
  }

  /** The points of a packet's way. */
  private way(i: number): number[] {
    const { trace } = this;
    const points = [this.x(trace.from[i]), this.y(trace.sent[i])];
    const [first, last] = hopsOf(trace, i);
    for (let hop = first; hop < last; hop++) {
      if (!this.laneOf.has(trace.hopLane[hop])) continue;
      const x = this.x(trace.hopLane[hop]);
      points.push(x, this.y(trace.hopEnter[hop]), x, this.y(trace.hopLeave[hop]));
    }
    const [lastX, lastY] = [points[points.length - 2], points[points.length - 1]];
    let x = this.x(trace.to[i]);
    let y = this.y(trace.ended[i]);
    if (trace.fate[i] === Fate.Lost) {
      if (Number.isNaN(y)) y = lastY;
      if (trace.place[i] === NOWHERE) {
        // Somewhere on its way.
        x = lastX + (x - lastX) * 0.6;
        y = lastY + (y - lastY) * 0.6;
      } else x = this.x(trace.place[i]);
    } else if (Number.isNaN(y)) {
      // Nobody saw its end: a stub.
      x = lastX + (x - lastX) * 0.15;
      y = lastY;
    }
    points.push(x, y);
    return points;
  }

  private stroke(points: number[]): void {
    this.context.moveTo(points[0], points[1]);
    for (let i = 2; i < points.length; i += 2) this.context.lineTo(points[i], points[i + 1]);
  }

  private drawLines(): void {
    const { context, trace, store } = this;
    const colours = palette();
    const { colour, marks, lost } = store.shown;
    // One path for all lines that look the same.
    const styles = new Map<string, number[][]>();
    const ends: { x: number; y: number; what: "lost" | "useless" | "again" }[] = [];
    const filtered = marks !== 0 || lost;
    const dashed = this.visible.length <= MOST_DASHED;
    for (const i of this.visible) {
      const points = this.way(i);
      const chosen = !filtered || (trace.mark[i] & marks) !== 0 || (lost && isLost(trace, i));
      const again = (trace.mark[i] & Mark.Retransmitted) !== 0;
      const sure = (trace.mark[i] & Mark.Estimated) === 0;
      const stroke = isLost(trace, i) ? colours.lost : colours.list[colourOf(trace, i, colour) % colours.list.length];
      const alpha = chosen ? (sure ? 0.9 : 0.6) : 0.12;
      const key = `${stroke} ${alpha} ${again && dashed ? 1 : 0}`;
      const list = styles.get(key);
      if (list) list.push(points);
      else styles.set(key, [points]);
      if (!chosen) continue;
      const [x, y] = [points[points.length - 2], points[points.length - 1]];
      if (isLost(trace, i)) ends.push({ x, y, what: "lost" });
      else if (trace.mark[i] & Mark.Useless) ends.push({ x, y, what: "useless" });
      if (again) ends.push({ x: points[0], y: points[1], what: "again" });
    }
    for (const [key, list] of styles) {
      const [stroke, alpha, dash] = key.split(" ");
      context.strokeStyle = stroke;
      context.globalAlpha = Number(alpha);
      context.setLineDash(dash === "1" ? [5, 3] : []);
      context.beginPath();
      for (const points of list) this.stroke(points);
      context.stroke();
    }
    context.setLineDash([]);
    context.globalAlpha = 1;
    this.drawEnds(ends);
  }

  private drawEnds(ends: { x: number; y: number; what: string }[]): void {
    const { context } = this;
    const colours = palette();
    context.lineWidth = 1.6;
    for (const what of ["lost", "useless", "again"]) {
      context.strokeStyle = what === "lost" ? colours.lost : what === "again" ? colours.again : colours.faint;
      context.beginPath();
      for (const { x, y } of ends.filter((end) => end.what === what)) {
        if (what === "lost") {
          context.moveTo(x - 4, y - 4);
          context.lineTo(x + 4, y + 4);
          context.moveTo(x - 4, y + 4);
          context.lineTo(x + 4, y - 4);
        } else {
          context.moveTo(x + 3, y);
          context.arc(x, y, 3, 0, 7);
        }
      }
      context.stroke();
    }
    context.lineWidth = 1;
  }

  private drawFollowed(): void {
    const { context, trace, store } = this;
    const colours = palette();
    const [from, until] = store.span();
    const chosen = followed(trace, store.shown.follow).filter((i) => trace.sent[i] < until && !(trace.ended[i] < from));
    context.strokeStyle = colours.select;
    context.lineWidth = 2.5;
    context.beginPath();
    for (const i of chosen.slice(0, MOST_LINES)) this.stroke(this.way(i));
    if (this.hovered >= 0 && this.hovered < trace.count) this.stroke(this.way(this.hovered));
    context.stroke();
    context.lineWidth = 1;
  }

  /** The packet at a place, or -1. */
  hit(x: number, y: number): number {
    if (this.ways) return this.ways.hit(x, y, this.frame());
    let best = -1;
    let least = NEAR;
    for (const i of this.visible) {
      const points = this.way(i);
      for (let p = 0; p + 3 < points.length; p += 2) {
        const distance = toSegment(x, y, points[p], points[p + 1], points[p + 2], points[p + 3]);
        if (distance < least) {
          least = distance;
          best = i;
        }
      }
    }
    return best;
  }

  private listen(): void {
    const { canvas, store } = this;
    let drag: { y: number; x: number; moved: boolean } | null = null;
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const time = this.timeAt(event.offsetY);
        if (event.ctrlKey || event.metaKey || !event.shiftKey) store.zoomAbout(time, Math.exp(event.deltaY * 0.0015));
        else this.panBy(event.deltaY);
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => {
      drag = { y: event.offsetY, x: event.offsetX, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (drag) {
        const moved = drag.y - event.offsetY;
        if (Math.abs(moved) > 2 || drag.moved) {
          drag.moved = true;
          this.panBy(moved);
          drag.y = event.offsetY;
        }
        return;
      }
      store.point(this.timeAt(event.offsetY));
      const packet = this.hit(event.offsetX, event.offsetY);
      if (packet !== this.hovered) {
        this.hovered = packet;
        store.request();
      }
      this.onHover(packet, event.clientX, event.clientY);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (drag && !drag.moved) this.onSelect(this.hit(event.offsetX, event.offsetY));
      drag = null;
    });
    canvas.addEventListener("pointerleave", () => {
      this.hovered = -1;
      store.point(null);
      this.onHover(-1, 0, 0);
    });
    canvas.addEventListener("dblclick", (event) => store.zoomAbout(this.timeAt(event.offsetY), 0.2));
  }

  private panBy(pixels: number): void {
    const [from, until] = this.store.span();
    this.store.pan((pixels / (this.height - HEAD - FOOT)) * (until - from));
  }
}

/** The packets that are followed. */
export function followed(trace: Trace, follow: Store["shown"]["follow"]): number[] {
  if (!follow) return [];
  if (follow.what === "packet") return follow.packet < trace.count ? [follow.packet] : [];
  const all: number[] = [];
  for (let i = 0; i < trace.count; i++) {
    // A block of a swarm is the same whoever sends it.
    const isOther = trace.flow[i] !== follow.flow && !isSwarm(trace);
    if (isOther || trace.len[i] === 0) continue;
    const hit =
      follow.what === "block"
        ? trace.block[i] === follow.block && trace.channel[i] === follow.channel && trace.kind[i] <= 1
        : trace.seq[i] <= follow.seq && follow.seq < trace.seq[i] + trace.len[i] && trace.kind[i] <= 1;
    if (hit) all.push(i);
  }
  return all;
}

function toSegment(x: number, y: number, x0: number, y0: number, x1: number, y1: number): number {
  const [dx, dy] = [x1 - x0, y1 - y0];
  const length = dx * dx + dy * dy;
  const along = length ? Math.max(0, Math.min(1, ((x - x0) * dx + (y - y0) * dy) / length)) : 0;
  return Math.hypot(x - x0 - along * dx, y - y0 - along * dy);
}
