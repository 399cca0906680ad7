/** What the playground's sliders stand for, as a scenario of the simulator (docs/scenario.md). */

export interface Setting {
  name: string;
  label: string;
  unit: string;
  low: number;
  high: number;
  initial: number;
  /** Steps of equal ratio, not of equal difference. */
  ratio?: boolean;
}

export const SETTINGS: Setting[] = [
  { name: "rate", label: "Rate", unit: "Mbit/s", low: 1, high: 200, initial: 20, ratio: true },
  { name: "rtt", label: "Round-trip time", unit: "ms", low: 2, high: 600, initial: 100, ratio: true },
  { name: "loss", label: "Random loss", unit: "%", low: 0, high: 10, initial: 1 },
  { name: "buffer", label: "Buffer", unit: "BDP", low: 0.1, high: 4, initial: 1, ratio: true },
  { name: "size", label: "Transfer", unit: "MB", low: 0.1, high: 20, initial: 3, ratio: true },
];

export const QUEUES = ["fifo", "drr", "codel", "fq-codel", "red"];

export type Values = Record<string, number> & { queue?: never };

/** Where a slider of 1000 steps stands. */
export function toValue(setting: Setting, step: number): number {
  const share = step / 1000;
  const value = setting.ratio
    ? setting.low * (setting.high / setting.low) ** share
    : setting.low + (setting.high - setting.low) * share;
  return Number(value.toPrecision(2));
}

export function toStep(setting: Setting, value: number): number {
  const share = setting.ratio
    ? Math.log(value / setting.low) / Math.log(setting.high / setting.low)
    : (value - setting.low) / (setting.high - setting.low);
  return Math.round(share * 1000);
}

/** A scenario with one flow that moves one object. */
export function scenario(values: Record<string, number>, queue: string, protocol: string): string {
  return `[scenario]
id = "playground"
duration = "60 s"
until_done = true
sample = "20 ms"

[topology]
rate = "${values.rate} Mbit/s"
rtt = "${values.rtt} ms"
buffer = "${values.buffer} BDP"
queue = "${queue}"
loss = "${values.loss}%"

[dfcp]
rate = "auto"

[[flow]]
name = "transfer"
protocol = "${protocol}"
app = "object"
size = "${Math.round(values.size * 1e6)} B"
`;
}
