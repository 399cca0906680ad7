/** What is shown: all of it is in the URL, so that a view can be sent to somebody. */

export type View = "both" | "exchange" | "timeline";
export type Colour = "kind" | "path" | "flow" | "block" | "sender";
export type Follow =
  | { what: "packet"; packet: number }
  | { what: "block"; flow: number; channel: number; block: number }
  | { what: "seq"; flow: number; seq: number };

export interface Shown {
  /** Nanoseconds; the whole trace if they are equal. */
  from: number;
  until: number;
  view: View;
  colour: Colour;
  /** One flow only, or all. */
  flow: number | null;
  /** One path of the flow only, or all. */
  path: number | null;
  follow: Follow | null;
  /** Packets with these marks are shown bright, others pale. */
  marks: number;
  lost: boolean;
}

export const INITIAL: Shown = {
  from: 0,
  until: 0,
  view: "both",
  colour: "kind",
  flow: null,
  path: null,
  follow: null,
  marks: 0,
  lost: false,
};

const VIEWS: View[] = ["both", "exchange", "timeline"];
const COLOURS: Colour[] = ["kind", "path", "flow", "block", "sender"];

export function toHash(shown: Shown): string {
  const parts: string[] = [];
  if (shown.until > shown.from) parts.push(`t=${number(shown.from / 1e9)}-${number(shown.until / 1e9)}`);
  if (shown.view !== "both") parts.push(`view=${shown.view}`);
  if (shown.colour !== "kind") parts.push(`colour=${shown.colour}`);
  if (shown.flow !== null) parts.push(`flow=${shown.flow}`);
  if (shown.path !== null) parts.push(`path=${shown.path}`);
  if (shown.marks) parts.push(`marks=${shown.marks}`);
  if (shown.lost) parts.push("lost=1");
  const follow = shown.follow;
  if (follow?.what === "packet") parts.push(`packet=${follow.packet}`);
  if (follow?.what === "block") parts.push(`block=${follow.flow}.${follow.channel}.${follow.block}`);
  if (follow?.what === "seq") parts.push(`seq=${follow.flow}.${follow.seq}`);
  return parts.length ? `#${parts.join("&")}` : "";
}

/** What a URL says; what makes no sense in it is left out. */
export function fromHash(hash: string): Shown {
  const shown = { ...INITIAL };
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const span = /^([\d.]+)-([\d.]+)$/.exec(fields.get("t") ?? "");
  if (span) {
    const [from, until] = [Number(span[1]) * 1e9, Number(span[2]) * 1e9];
    if (until > from) Object.assign(shown, { from, until });
  }
  const view = VIEWS.find((one) => one === fields.get("view"));
  if (view) shown.view = view;
  const colour = COLOURS.find((one) => one === fields.get("colour"));
  if (colour) shown.colour = colour;
  shown.flow = whole(fields.get("flow"));
  shown.path = shown.flow === null ? null : whole(fields.get("path"));
  shown.marks = whole(fields.get("marks")) ?? 0;
  shown.lost = fields.get("lost") === "1";
  const packet = whole(fields.get("packet"));
  const numbers = (name: string, count: number): number[] | null => {
    const all = (fields.get(name) ?? "").split(".").map(whole);
    return all.length === count && all.every((one) => one !== null) ? all.map(Number) : null;
  };
  const [block, seq] = [numbers("block", 3), numbers("seq", 2)];
  if (packet !== null) shown.follow = { what: "packet", packet };
  else if (block) shown.follow = { what: "block", flow: block[0], channel: block[1], block: block[2] };
  else if (seq) shown.follow = { what: "seq", flow: seq[0], seq: seq[1] };
  return shown;
}

const number = (value: number): string => String(Number(value.toFixed(9)));

function whole(text: string | null | undefined): number | null {
  return text && /^\d+$/.test(text) ? Number(text) : null;
}

/** Tells everybody who draws when something else is to be shown; they draw once a frame. */
export class Store {
  shown: Shown;
  /** The time under the pointer, shared by all views. */
  cursor: number | null = null;
  private readonly draws: (() => void)[] = [];
  private requested = false;

  constructor(
    initial: Shown,
    /** The end of the longest trace. */
    public end: number,
    private readonly remember: (shown: Shown) => void = () => {},
  ) {
    this.shown = initial;
  }

  /** The span that is shown. */
  span(): [number, number] {
    const { from, until } = this.shown;
    return until > from ? [from, until] : [0, Math.max(1, this.end)];
  }

  set(change: Partial<Shown>): void {
    this.shown = { ...this.shown, ...change };
    this.remember(this.shown);
    this.request();
  }

  /** Shows this span, or as much of it as there is. */
  zoom(from: number, until: number): void {
    this.set(this.spanOf(from, until));
  }

  /** As much of a span as there is. */
  spanOf(from: number, until: number): { from: number; until: number } {
    const end = Math.max(1, this.end);
    const length = Math.min(Math.max(until - from, 1000), end * 1.02);
    const begin = Math.min(Math.max(from, -0.01 * end), end * 1.01 - length);
    const all = begin <= 0 && begin + length >= end;
    return all ? { from: 0, until: 0 } : { from: Math.max(0, begin), until: Math.max(0, begin) + length };
  }

  /** Zooms by a factor about a time that stays where it is. */
  zoomAbout(time: number, factor: number): void {
    const [from, until] = this.span();
    this.zoom(time - (time - from) * factor, time + (until - time) * factor);
  }

  pan(nanos: number): void {
    const [from, until] = this.span();
    const limited = Math.max(-from, Math.min(nanos, this.end - until));
    this.zoom(from + limited, until + limited);
  }

  point(time: number | null): void {
    if (time !== this.cursor) {
      this.cursor = time;
      this.request();
    }
  }

  onDraw(draw: () => void): void {
    this.draws.push(draw);
  }

  /** Draws at the next frame. */
  request(): void {
    if (this.requested) return;
    this.requested = true;
    requestAnimationFrame(() => {
      this.requested = false;
      for (const draw of this.draws) draw();
    });
  }
}
