/** What there is to say of a packet. */

import { duration, Fate, hopsOf, Mark, markNames, NOWHERE, seconds, type Trace } from "./trace";
import { isSwarm } from "./ways";

export type Fact = [string, string];

export function factsOf(trace: Trace, i: number): Fact[] {
  if (isSwarm(trace)) return blockFacts(trace, i);
  const flow = trace.flows[trace.flow[i]];
  const lane = (index: number) => trace.lanes[index]?.name ?? "?";
  const estimated = markNames(trace, trace.mark[i]).includes("estimated") ? " (estimated)" : "";
  const facts: Fact[] = [
    ["packet", `${trace.number[i]}, ${trace.kinds[trace.kind[i]]}, ${trace.size[i]} B`],
    ["flow", flow ? `${flow.name} (${flow.protocol})` : "–"],
    ["way", `${lane(trace.from[i])} → ${lane(trace.to[i])}`],
    ["sent", seconds(trace.sent[i])],
  ];
  if (flow?.paths.length) facts.push(["path", flow.paths[trace.path[i]] ?? String(trace.path[i] + 1)]);
  const took = trace.ended[i] - trace.sent[i];
  if (trace.fate[i] === Fate.Lost) {
    const where = trace.place[i] === NOWHERE ? "on the way" : `at ${lane(trace.place[i])}`;
    facts.push(["lost", `${where}${Number.isNaN(took) ? "" : ` after ${duration(took)}`}${estimated}`]);
  } else if (trace.fate[i] === Fate.Arrived) {
    facts.push(["arrived", `${seconds(trace.ended[i])}, after ${duration(took)}${estimated}`]);
  } else facts.push(["arrival", "not seen"]);
  const unit = flow?.unit ?? "";
  if (trace.len[i]) {
    const isSymbols = unit === "symbols" && trace.kind[i] <= 1;
    const range = trace.len[i] === 1 ? `${trace.seq[i]}` : `${trace.seq[i]} to ${trace.seq[i] + trace.len[i] - 1}`;
    facts.push([isSymbols ? "symbols (ESI)" : unit === "symbols" ? "packet number" : unit || "sequence", range]);
    const channel = trace.channel[i] ? ` of channel ${trace.channel[i]}` : "";
    if (isSymbols) facts.push(["block", `${trace.block[i]}${channel}`]);
  }
  if (trace.ack[i]) facts.push(["acknowledges", `below ${trace.ack[i]}`]);
  const [first, last] = hopsOf(trace, i);
  for (let hop = first; hop < last; hop++) {
    const stay = duration(trace.hopLeave[hop] - trace.hopEnter[hop]);
    facts.push([`at ${lane(trace.hopLane[hop])}`, `${stay} from ${seconds(trace.hopEnter[hop])} on`]);
  }
  const marks = markNames(trace, trace.mark[i]).filter((name) => name !== "estimated");
  if (marks.length) facts.push(["marks", marks.join(", ")]);
  return facts;
}

/** What there is to say of a block on its way between nodes of a swarm. */
function blockFacts(trace: Trace, i: number): Fact[] {
  const took = duration(trace.ended[i] - trace.sent[i]);
  const fate = trace.fate[i] === Fate.Lost ? "cut off" : trace.mark[i] & Mark.Useless ? "wrong" : "came";
  return [
    ["block", `${trace.block[i]}, ${trace.size[i]} B`],
    ["from", trace.lanes[trace.from[i]].name],
    ["to", trace.lanes[trace.to[i]].name],
    ["begun", seconds(trace.sent[i])],
    [fate, `${seconds(trace.ended[i])}, after ${took}`],
  ];
}

export function table(facts: Fact[]): HTMLTableElement {
  const table = document.createElement("table");
  for (const [name, value] of facts) {
    const row = table.insertRow();
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = name;
    row.append(head);
    row.insertCell().textContent = value;
  }
  return table;
}
