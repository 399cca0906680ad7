/** What stands beside the views: what each trace is, what was found in it, and what is followed. */

import { factsOf, table } from "./details";
import type { Named } from "./load";
import type { Follow } from "./state";
import { type Finding, seconds, type Trace } from "./trace";
import { isSwarm } from "./ways";

export interface Places {
  /** The URL of a finding's place. */
  link(trace: number, finding: Finding): string;
  goTo(trace: number, finding: Finding): void;
}

export function tellFindings(place: HTMLElement, traces: Named[], places: Places): void {
  place.replaceChildren();
  traces.forEach(({ name, trace }, index) => {
    if (traces.length > 1) place.append(text("h3", name));
    place.append(text("p", summary(trace), "note"));
    const list = document.createElement("ol");
    for (const finding of trace.findings) {
      const item = document.createElement("li");
      const link = text("a", sentence(trace, finding));
      link.href = places.link(index, finding);
      link.addEventListener("click", (event) => {
        // A link that is opened elsewhere, or copied, leads to the place by itself.
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        places.goTo(index, finding);
      });
      item.append(link);
      list.append(item);
    }
    place.append(trace.findings.length ? list : text("p", "Nothing stands out."));
    for (const note of notes(trace)) place.append(text("p", note, "note"));
  });
}

/** Where there is one flow, its name says nothing; what is of its second direction has an arrow. */
function sentence(trace: Trace, finding: Finding): string {
  const { name } = trace.flows[finding.flow] ?? { name: "" };
  if (trace.flows.length !== 1 || !finding.text.startsWith(name)) return finding.text;
  return finding.text.slice(name.length).replace(/^: /, "").replace(/^ ←: /, "← ");
}

function text<K extends keyof HTMLElementTagNameMap>(tag: K, content: string, className = ""): HTMLElementTagNameMap[K] {
  const one = document.createElement(tag);
  one.textContent = content;
  if (className) one.className = className;
  return one;
}

/** All of a trace in a line. */
function summary(trace: Trace): string {
  let lost = 0;
  let again = 0;
  for (const { counts } of trace.flows) {
    for (const side of counts) {
      lost += side.lost;
      again += side.retransmitted;
    }
  }
  const flows = trace.flows.length === 1 ? "" : `, ${trace.flows.length} flows`;
  if (isSwarm(trace)) return `${seconds(trace.end)}, ${trace.lanes.length} nodes, ${trace.total} blocks, ${lost} cut off.`;
  return `${seconds(trace.end)}, ${trace.total} packets, ${lost} lost, ${again} sent again${flows}.`;
}

function notes(trace: Trace): string[] {
  const [ordinary, remarkable] = trace.kept;
  if (ordinary <= 1) return trace.notes;
  const others = remarkable > 1 ? `, and 1 of ${remarkable} others` : "; lost ones and others that stand out are all here";
  const thinned = `Of ${trace.total} packets 1 of ${ordinary} ordinary ones is shown${others}. Zoom in and load the part in full.`;
  return [thinned, ...trace.notes];
}

interface Actions {
  follow(next: Follow): void;
  goTo(packet: number): void;
}

export function tellFollow(place: HTMLElement, trace: Trace | undefined, follow: Follow | null, actions: Actions): void {
  place.replaceChildren();
  if (!follow || !trace) {
    place.append(text("p", "Click a packet to follow it.", "note"));
  } else if (follow.what === "packet") {
    if (follow.packet < trace.count) tellPacket(place, trace, follow.packet, actions);
  } else place.append(text("p", follow.what === "block" ? ofBlock(trace, follow) : `Everything that carried ${follow.seq}.`));
}

function tellPacket(place: HTMLElement, trace: Trace, i: number, actions: Actions): void {
  place.append(table(factsOf(trace, i)));
  const button = (name: string, run: () => void) => {
    const one = text("button", name);
    one.type = "button";
    one.addEventListener("click", run);
    place.append(one);
  };
  const flow = trace.flow[i];
  if (trace.flows[flow]?.unit === "symbols" && trace.kind[i] <= 1) {
    const follow: Follow = { what: "block", flow, channel: trace.channel[i], block: trace.block[i] };
    button("follow its block", () => actions.follow(follow));
  } else if (trace.len[i]) {
    button("follow its data", () => actions.follow({ what: "seq", flow, seq: trace.seq[i] }));
  }
  button("go there", () => actions.goTo(i));
}

function ofBlock({ blocks }: Trace, { flow, channel, block }: Follow & { what: "block" }): string {
  const at = blocks.number.findIndex((one, i) => one === block && blocks.channel[i] === channel && blocks.flow[i] === flow);
  if (at < 0) return `Block ${block}`;
  // Who only receives does not know how many were sent.
  const sent = blocks.sent[at] === blocks.received[at] ? "" : `${blocks.sent[at]} sent, `;
  const symbols = `${blocks.k[at]} symbols needed, ${sent}${blocks.received[at]} arrived`;
  const useless = `${blocks.useless[at]} of them useless`;
  return `Block ${block}: ${symbols}, ${useless}; from ${seconds(blocks.begun[at])} to ${seconds(blocks.done[at])}.`;
}
