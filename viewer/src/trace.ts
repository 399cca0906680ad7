/**
 * A trace as crates/trace/src/stream.rs writes it: a JSON head, then columns, which are read in
 * place.
 */

export interface Lane {
  name: string;
  kind: "host" | "queue" | "node";
}

export interface Counts {
  packets: number;
  bytes: number;
  data: number;
  lost: number;
  retransmitted: number;
  spurious: number;
  reordered: number;
  marked: number;
  delivered: number;
}

export interface Flow {
  name: string;
  protocol: string;
  unit: string;
  paths: string[];
  counts: [Counts, Counts];
}

export interface Series {
  group: string;
  unit: string;
  name: string;
  flow: number | null;
  time: Float64Array;
  value: Float32Array;
}

export interface Finding {
  text: string;
  flow: number;
  from: number;
  until: number;
  marks: number;
  lost: boolean;
  weight: number;
}

export interface Trace {
  title: string;
  origin: bigint;
  /** Nanoseconds, as all times. */
  end: number;
  total: number;
  kept: [number, number];
  lanes: Lane[];
  flows: Flow[];
  kinds: string[];
  marks: string[];
  series: Series[];
  findings: Finding[];
  notes: string[];
  count: number;
  sent: Float64Array;
  ended: Float64Array;
  seq: Float64Array;
  ack: Float64Array;
  number: Float64Array;
  len: Uint32Array;
  size: Uint32Array;
  block: Uint32Array;
  flow: Uint16Array;
  channel: Uint16Array;
  mark: Uint16Array;
  from: Uint16Array;
  to: Uint16Array;
  path: Uint8Array;
  kind: Uint8Array;
  fate: Uint8Array;
  place: Uint16Array;
  hopPacket: Uint32Array;
  hopLane: Uint16Array;
  hopEnter: Float64Array;
  hopLeave: Float64Array;
  blocks: {
    flow: Uint16Array;
    channel: Uint32Array;
    number: Uint32Array;
    k: Uint32Array;
    sent: Uint32Array;
    received: Uint32Array;
    useless: Uint32Array;
    begun: Float64Array;
    done: Float64Array;
  };
  /** The longest time between departure and end of a packet. */
  longest: number;
}

export const Kind = { Data: 0, Repair: 1, Ack: 2, Handshake: 3, Control: 4, Opaque: 5 } as const;
export const Fate = { Unknown: 0, Arrived: 1, Lost: 2 } as const;
export const Mark = {
  Retransmitted: 0x01,
  Redundant: 0x02,
  Useless: 0x04,
  Spurious: 0x08,
  Reordered: 0x10,
  Congestion: 0x20,
  Estimated: 0x40,
  Copy: 0x80,
} as const;
export const NOWHERE = 65535;

const ARRAYS = { f64: Float64Array, f32: Float32Array, u32: Uint32Array, u16: Uint16Array, u8: Uint8Array };
const MAGIC = "FONTISTR";

interface Place {
  type: keyof typeof ARRAYS;
  at: number;
  count: number;
}

/** Reads a trace; throws with one line that says what is wrong. */
export function decode(buffer: ArrayBuffer): Trace {
  const view = new DataView(buffer);
  const magic = new TextDecoder().decode(new Uint8Array(buffer, 0, Math.min(8, buffer.byteLength)));
  if (magic !== MAGIC || buffer.byteLength < 16) throw new Error("this is no trace of Fontis");
  const version = view.getUint32(8, true);
  if (version !== 2) throw new Error(`this is a trace of version ${version}; this page reads version 2`);
  const length = view.getUint32(12, true);
  if (16 + length > buffer.byteLength) throw new Error("the trace is cut off in its head");
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 16, length)));
  const body = Math.ceil((16 + length) / 8) * 8;
  const column = <T extends keyof typeof ARRAYS>(name: string, type: T): InstanceType<(typeof ARRAYS)[T]> => {
    const place: Place | undefined = head.columns[name];
    if (place?.type !== type) throw new Error(`the trace has no column ${name}`);
    const array = ARRAYS[type];
    if (body + place.at + place.count * array.BYTES_PER_ELEMENT > buffer.byteLength) {
      throw new Error(`the trace is cut off in its column ${name}`);
    }
    return new array(buffer, body + place.at, place.count) as InstanceType<(typeof ARRAYS)[T]>;
  };
  const sent = column("sent", "f64");
  const ended = column("ended", "f64");
  let longest = 0;
  for (let i = 0; i < sent.length; i++) {
    const life = ended[i] - sent[i];
    if (life > longest) longest = life;
  }
  return {
    title: head.title,
    origin: BigInt(head.origin),
    end: head.end,
    total: head.total,
    kept: head.kept,
    lanes: head.lanes,
    flows: head.flows,
    kinds: head.kinds,
    marks: head.marks,
    findings: head.findings,
    notes: head.notes,
    series: head.series.map((series: Omit<Series, "time" | "value">, index: number) => ({
      ...series,
      time: column(`series_${index}_time`, "f64"),
      value: column(`series_${index}_value`, "f32"),
    })),
    count: sent.length,
    sent,
    ended,
    longest,
    seq: column("seq", "f64"),
    ack: column("ack", "f64"),
    number: column("number", "f64"),
    len: column("len", "u32"),
    size: column("size", "u32"),
    block: column("block", "u32"),
    flow: column("flow", "u16"),
    channel: column("channel", "u16"),
    mark: column("marks", "u16"),
    from: column("from", "u16"),
    to: column("to", "u16"),
    path: column("path", "u8"),
    kind: column("kind", "u8"),
    fate: column("fate", "u8"),
    place: column("place", "u16"),
    hopPacket: column("hop_packet", "u32"),
    hopLane: column("hop_lane", "u16"),
    hopEnter: column("hop_enter", "f64"),
    hopLeave: column("hop_leave", "f64"),
    blocks: {
      flow: column("block_flow", "u16"),
      channel: column("block_channel", "u32"),
      number: column("block_number", "u32"),
      k: column("block_k", "u32"),
      sent: column("block_sent", "u32"),
      received: column("block_received", "u32"),
      useless: column("block_useless", "u32"),
      begun: column("block_begun", "f64"),
      done: column("block_done", "f64"),
    },
  };
}

/** The first index at which a sorted array has at least `value`. */
export function lowerBound(array: Float64Array | Uint32Array, value: number): number {
  let low = 0;
  let high = array.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (array[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The packets that were under way at some time in a span: first and one beyond the last. */
export function underWay(trace: Trace, from: number, until: number): [number, number] {
  return [lowerBound(trace.sent, from - trace.longest), lowerBound(trace.sent, until)];
}

/** Whether a packet is of the flow and the path that are shown. */
export function isOf(trace: Trace, i: number, { flow, path }: { flow: number | null; path: number | null }): boolean {
  return (flow === null || trace.flow[i] === flow) && (path === null || trace.path[i] === path);
}

/** The queues that a packet passed. */
export function hopsOf(trace: Trace, packet: number): [number, number] {
  return [lowerBound(trace.hopPacket, packet), lowerBound(trace.hopPacket, packet + 1)];
}

export const markNames = (trace: Trace, marks: number): string[] => trace.marks.filter((_, bit) => marks & (1 << bit));

/** Seconds with as many decimals as a span needs. */
export function seconds(nanos: number, span = 0): string {
  const value = nanos / 1e9;
  if (!Number.isFinite(value)) return "–";
  const decimals = span > 0 ? Math.max(0, Math.min(9, Math.ceil(-Math.log10(span / 1e9)) + 2)) : value < 1 ? 6 : 4;
  return `${value.toFixed(decimals)} s`;
}

export function duration(nanos: number): string {
  if (!Number.isFinite(nanos)) return "–";
  const magnitude = Math.abs(nanos);
  if (magnitude >= 1e9) return `${(nanos / 1e9).toFixed(3)} s`;
  if (magnitude >= 1e6) return `${(nanos / 1e6).toFixed(2)} ms`;
  return `${(nanos / 1e3).toFixed(1)} µs`;
}
