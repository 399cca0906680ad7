/** The timeline view: sequence numbers, blocks and series over one time axis with one cursor. */

import { BlocksPanel } from "./blocks";
import type { Panel } from "./panel";
import { type Curve, PlotPanel } from "./plot";
import { SequencePanel } from "./sequence";
import type { Store } from "./state";
import type { Trace } from "./trace";

/** Of many flows those with the largest values are drawn: choose a flow to see its own. */
const MOST_CURVES = 12;

export class TimelineView {
  private panels: Panel[] = [];
  private width = 0;
  private signature = "";

  constructor(
    private readonly parent: HTMLElement,
    private traces: Trace[],
    private names: string[],
    private readonly store: Store,
    private readonly onSelect: (trace: number, packet: number) => void,
  ) {
    new ResizeObserver(() => this.resize()).observe(parent);
    store.onDraw(() => this.draw());
  }

  show(traces: Trace[], names: string[]): void {
    this.traces = traces;
    this.names = names;
    this.signature = "";
    this.store.request();
  }

  private resize(): void {
    const width = this.parent.clientWidth;
    if (width < 60 || width === this.width) return;
    this.width = width;
    for (const panel of this.panels) panel.resize(width);
    this.store.request();
  }

  /** Panels are made anew when there is another flow or theme: a plot cannot change its series. */
  private build(): void {
    const { scrollTop } = this.parent;
    this.parent.replaceChildren();
    this.panels = [];
    const flow = this.store.shown.flow;
    const groups = this.groups(flow);
    // Of two runs it is the first question how far each has come.
    const first = this.traces.length > 1 ? groups.get("Delivered") : undefined;
    if (first) this.plot("Delivered", first);
    this.traces.forEach((trace, index) => {
      const name = this.traces.length > 1 ? `${this.names[index]}: ` : "";
      const select = (packet: number) => this.onSelect(index, packet);
      const flows = trace.flows.filter((_, i) => flow === null || i === flow);
      const units = [...new Set(flows.filter(({ counts }) => counts[0].data + counts[1].data > 0).map(({ unit }) => unit))];
      for (const unit of units) {
        const line = unit === "symbols" ? "decoded" : "acknowledged";
        const title = `${name}Sequence, ${unit} (points: sent, small: delivered, line: ${line})`;
        this.panels.push(new SequencePanel(this.section(title), trace, unit, this.store, select));
      }
      const has = trace.blocks.flow.some((one) => flow === null || one === flow);
      if (has)
        this.panels.push(new BlocksPanel(this.section(`${name}Blocks, symbols received of those needed`), trace, this.store));
    });
    for (const [group, curves] of groups) {
      if (curves !== first) this.plot(group, curves);
    }
    for (const panel of this.panels) panel.resize(this.width || this.parent.clientWidth || 600);
    this.parent.scrollTop = scrollTop;
  }

  private plot(group: string, curves: Curve[]): void {
    const shown = curves.length > MOST_CURVES ? largest(curves) : curves;
    const { unit } = shown[0].series;
    const some = curves.length > MOST_CURVES ? ` (${MOST_CURVES} of ${curves.length})` : "";
    this.panels.push(new PlotPanel(this.section(`${group}, ${unit}${some}`), group, shown, this.store));
  }

  /** The series of all traces, by plot. */
  private groups(flow: number | null): Map<string, Curve[]> {
    const groups = new Map<string, Curve[]>();
    this.traces.forEach((trace, index) => {
      for (const series of trace.series) {
        if (flow !== null && series.flow !== null && series.flow !== flow) continue;
        // Where there is one flow, its name says nothing.
        const only = trace.flows.length === 1 ? `${trace.flows[0].name} ` : "";
        const name = only && series.name.startsWith(only) ? series.name.slice(only.length) : series.name;
        const label = this.traces.length > 1 ? `${this.names[index]}: ${name}` : name;
        const list = groups.get(series.group) ?? [];
        list.push({ series, label, dashed: index > 0 });
        groups.set(series.group, list);
      }
    });
    return groups;
  }

  private section(title: string): HTMLElement {
    const section = document.createElement("section");
    section.className = "panel";
    const heading = document.createElement("h3");
    heading.textContent = title;
    section.append(heading);
    this.parent.append(section);
    return section;
  }

  private draw(): void {
    if (this.store.shown.view === "exchange") return;
    const signature = `${this.store.shown.flow} ${document.documentElement.dataset.theme}`;
    if (signature !== this.signature) {
      this.signature = signature;
      this.build();
    }
    for (const panel of this.panels) panel.draw();
  }
}

function largest(curves: Curve[]): Curve[] {
  const most = new Map(curves.map((curve) => [curve, curve.series.value.reduce((a, b) => Math.max(a, b), 0)]));
  const kept = new Set([...curves].sort((a, b) => (most.get(b) ?? 0) - (most.get(a) ?? 0)).slice(0, MOST_CURVES));
  return curves.filter((curve) => kept.has(curve));
}
