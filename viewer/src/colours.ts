/** Colours of packets on dark and on light: Okabe and Ito's, which the colour-blind tell apart. */

import type { Colour } from "./state";
import { Fate, type Trace } from "./trace";

interface Palette {
  background: string;
  ink: string;
  faint: string;
  line: string;
  lost: string;
  again: string;
  select: string;
  list: string[];
}

const LIGHT: Palette = {
  background: "#ffffff",
  ink: "#1b1f24",
  faint: "#6b7380",
  line: "#d5dae1",
  lost: "#c8102e",
  again: "#a6500b",
  select: "#000000",
  list: ["#0b62b0", "#b58900", "#1a7f4b", "#7b3fb5", "#6b7380", "#2b8a9e", "#c2447f", "#5d6b1f"],
};
const DARK: Palette = {
  background: "#14171c",
  ink: "#e4e8ee",
  faint: "#939db0",
  line: "#2e343d",
  lost: "#ff5a6a",
  again: "#ffb066",
  select: "#ffffff",
  list: ["#58a6ff", "#e3b341", "#56d38c", "#c297ff", "#939db0", "#5cc8dc", "#ff8fc0", "#b9cc66"],
};

export const palette = (): Palette => (document.documentElement.dataset.theme === "dark" ? DARK : LIGHT);

/** Which colour of the list a packet has. */
export function colourOf(trace: Trace, packet: number, by: Colour): number {
  switch (by) {
    case "kind":
      return trace.kind[packet];
    case "path":
      return trace.path[packet];
    case "flow":
      return trace.flow[packet];
    case "block":
      return trace.block[packet];
    case "sender":
      // The first is the origin of a swarm: nobody else has its colour.
      return trace.from[packet] === 0 ? 0 : 1 + ((trace.from[packet] - 1) % 7);
  }
}

export interface Entry {
  name: string;
  index: number;
}

/** The names of the colours that are in use, for the legend. */
export function legend(traces: Trace[], by: Colour): Entry[] {
  const entries = new Map<string, Entry>();
  for (const trace of traces) {
    for (const entry of entriesOf(trace, by)) entries.set(`${entry.index} ${entry.name}`, entry);
  }
  return [...entries.values()].sort((a, b) => a.index - b.index);
}

function entriesOf(trace: Trace, by: Colour): Entry[] {
  switch (by) {
    case "kind": {
      const used = new Set<number>();
      for (let i = 0; i < trace.count; i++) used.add(trace.kind[i]);
      return [...used].map((index) => ({ name: trace.kinds[index], index }));
    }
    case "path":
      return trace.flows.flatMap((flow) => flow.paths.map((name, index) => ({ name: `path ${index + 1}: ${name}`, index })));
    case "flow":
      return trace.flows.slice(0, 8).map((flow, index) => ({ name: flow.name, index }));
    case "block":
      return [{ name: "a colour for each block, again after eight", index: 0 }];
    case "sender": {
      const [first, ...others] = trace.lanes.map(({ name }, index) => ({ name: `sent by ${name}`, index }));
      if (others.length <= 7) return [first, ...others];
      return [first, { name: "a colour for each other sender, again after seven", index: 1 }];
    }
  }
}

export const isLost = (trace: Trace, packet: number): boolean => trace.fate[packet] === Fate.Lost;
