/** The page's frame: toolbar, exchange views, timeline, findings, details, keyboard. */

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { legend, palette } from "./colours";
import { factsOf, table } from "./details";
import { ExchangeView } from "./exchange";
import type { Named } from "./load";
import { tellFindings, tellFollow } from "./sidebar";
import { type Colour, INITIAL, type Shown, Store, toHash, type View } from "./state";
import { TimelineView } from "./timeline";
import { Fate, type Finding, isOf, Mark, seconds, type Trace } from "./trace";
import { isSwarm } from "./ways";

const element = <T extends HTMLElement>(id: string): T => {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found as T;
};

export class App {
  readonly store: Store;
  private exchanges: ExchangeView[] = [];
  private timeline?: TimelineView;
  /** The trace whose packet is followed. */
  private active = 0;

  constructor(
    private traces: Named[],
    initial: Shown,
    remember: (shown: Shown) => void,
    private loadPart?: (index: number, span: [number, number]) => Promise<Trace>,
  ) {
    // In a swarm the question is who fed whom.
    const colour = initial.colour === "kind" && this.traces.some(({ trace }) => isSwarm(trace)) ? "sender" : initial.colour;
    this.store = new Store({ ...initial, colour }, this.end(), remember);
    this.store.onDraw(() => this.tell());
    this.controls();
    this.keyboard();
    this.build();
  }

  private end(): number {
    return Math.max(1, ...this.traces.map(({ trace }) => trace.end));
  }

  /** Shows other traces, as a live one that has grown. */
  replace(traces: Named[]): void {
    const same = traces.length === this.traces.length;
    this.traces = traces;
    this.store.end = this.end();
    if (!same) {
      this.build();
      return;
    }
    traces.forEach(({ trace }, index) => {
      this.exchanges[index].show(trace);
    });
    this.timeline?.show(
      traces.map(({ trace }) => trace),
      traces.map(({ name }) => name),
    );
    this.lists();
    this.store.request();
  }

  /** Shows traces that did not come from the command: it knows no parts of them. */
  take(traces: Named[]): void {
    this.loadPart = undefined;
    this.traces = [];
    this.replace(traces);
  }

  private build(): void {
    const place = element("exchanges");
    place.replaceChildren();
    this.exchanges = this.traces.map(({ name, trace }, index) => {
      const column = document.createElement("figure");
      if (this.traces.length > 1) {
        const caption = document.createElement("figcaption");
        caption.textContent = name;
        column.append(caption);
      }
      const box = document.createElement("div");
      box.className = "canvas";
      column.append(box);
      place.append(column);
      return new ExchangeView(
        box,
        trace,
        this.store,
        name,
        (packet, x, y) => this.hover(index, packet, x, y),
        (packet) => this.select(index, packet),
      );
    });
    const traces = this.traces.map(({ trace }) => trace);
    const names = this.traces.map(({ name }) => name);
    const panels = element("timeline");
    panels.replaceChildren();
    this.timeline = new TimelineView(panels, traces, names, this.store, (index, packet) => this.select(index, packet));
    this.lists();
    this.store.request();
  }

  /** Lists that depend on the traces alone. */
  private lists(): void {
    const first = this.traces[0]?.trace;
    if (!first) return;
    if (!document.body.classList.contains("playground")) {
      const names = this.traces.map(({ name }) => name).join(" | ");
      element("title").textContent = names;
      document.title = `${names} · PacketViz`;
    }
    const select = element<HTMLSelectElement>("flow");
    const longest = this.traces.reduce((a, b) => (b.trace.flows.length > a.trace.flows.length ? b : a)).trace;
    select.replaceChildren(new Option("all flows", ""));
    longest.flows.forEach((flow, index) => {
      select.add(new Option(`${flow.name} · ${flow.protocol}`, String(index)));
      if (flow.paths.length < 2) return;
      for (const [path, name] of flow.paths.entries()) {
        select.add(new Option(`${flow.name} · path ${path + 1}: ${name}`, `${index}/${path}`));
      }
    });
    tellFindings(element("findings"), this.traces, {
      link: (index, finding) => toHash({ ...INITIAL, ...this.placeOf(index, finding) }) || "#",
      goTo: (index, finding) => {
        this.active = index;
        this.store.set(this.placeOf(index, finding));
      },
    });
  }

  private placeOf(index: number, { flow, from, until, marks, lost }: Finding): Partial<Shown> {
    const margin = (until - from) * 0.1;
    const many = this.traces[index].trace.flows.length > 1;
    return { flow: many ? flow : null, path: null, marks, lost, ...this.store.spanOf(from - margin, until + margin) };
  }

  private hover(index: number, packet: number, x: number, y: number): void {
    const tip = element("tip");
    if (packet < 0) {
      tip.hidden = true;
      return;
    }
    tip.replaceChildren(table(factsOf(this.traces[index].trace, packet)));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - box.width - 8))}px`;
    tip.style.top = `${Math.max(4, Math.min(y + 14, window.innerHeight - box.height - 8))}px`;
  }

  select(index: number, packet: number): void {
    this.active = index;
    this.store.set({ follow: packet < 0 ? null : { what: "packet", packet } });
  }

  /** What depends on what is shown. */
  private tell(): void {
    const { shown } = this.store;
    const [from, until] = this.store.span();
    element("span").textContent = `${seconds(from, until - from)} – ${seconds(until, until - from)}`;
    document.body.dataset.view = shown.view;
    const path = shown.path === null ? "" : `/${shown.path}`;
    element<HTMLSelectElement>("flow").value = shown.flow === null ? "" : `${shown.flow}${path}`;
    element<HTMLSelectElement>("colour").value = shown.colour;
    element<HTMLSelectElement>("filter").value = shown.lost ? "lost" : String(shown.marks);
    for (const button of document.querySelectorAll<HTMLButtonElement>("[data-set-view]")) {
      button.setAttribute("aria-pressed", String(button.dataset.setView === shown.view));
    }
    this.tellLegend();
    this.tellFollowed();
    const thinned = this.traces.some(({ trace }) => trace.kept[0] > 1);
    element("full").hidden = !(this.loadPart && thinned && until - from < this.store.end * 0.9);
  }

  private tellLegend(): void {
    const traces = this.traces.map(({ trace }) => trace);
    const { colour } = this.store.shown;
    const place = element("legend");
    const key = `${colour} ${document.documentElement.dataset.theme} ${traces.map(({ count }) => count).join(" ")}`;
    if (place.dataset.key === key) return;
    place.dataset.key = key;
    const colours = palette();
    place.replaceChildren();
    const entry = (name: string, colour: string, shape = "■") => {
      const item = document.createElement("span");
      const mark = document.createElement("b");
      mark.style.color = colour;
      mark.textContent = shape;
      item.append(mark, ` ${name}`);
      place.append(item);
    };
    for (const { name, index } of legend(traces, colour)) entry(name, colours.list[index % 8]);
    entry("lost", colours.lost, "✕");
    entry("sent again (dashed)", colours.again, "○");
    entry("useless", colours.faint, "○");
  }

  private tellFollowed(): void {
    const place = element("followed");
    const { follow } = this.store.shown;
    const trace = this.traces[this.active]?.trace;
    const key = JSON.stringify([follow, this.active, trace?.count]);
    if (place.dataset.key === key) return;
    place.dataset.key = key;
    tellFollow(place, trace, follow, {
      follow: (next) => this.store.set({ follow: next }),
      goTo: (packet) => this.near(packet),
    });
  }

  /** Shows a packet's surroundings. */
  private near(i: number): void {
    const trace = this.traces[this.active].trace;
    const ended = Number.isNaN(trace.ended[i]) ? trace.sent[i] : trace.ended[i];
    const margin = Math.max((ended - trace.sent[i]) * 1.5, 1e5);
    this.store.zoom(trace.sent[i] - margin, ended + margin);
  }

  /** Follows the next packet for which something holds. */
  private next(step: 1 | -1, holds: (trace: Trace, i: number) => boolean): void {
    const trace = this.traces[this.active].trace;
    const { follow } = this.store.shown;
    const [from] = this.store.span();
    let i = follow?.what === "packet" ? follow.packet + step : trace.sent.findIndex((sent) => sent >= from);
    for (; i >= 0 && i < trace.count; i += step) {
      if (isOf(trace, i, this.store.shown) && holds(trace, i)) {
        this.store.set({ follow: { what: "packet", packet: i } });
        const [begin, end] = this.store.span();
        if (trace.sent[i] < begin || trace.sent[i] > end) {
          const half = (end - begin) / 2;
          this.store.zoom(trace.sent[i] - half, trace.sent[i] + half);
        }
        return;
      }
    }
  }

  /** When the packet left that is followed, if that is in a span. */
  private followedAt(from: number, until: number): number | undefined {
    const { follow } = this.store.shown;
    const sent = follow?.what === "packet" ? this.traces[this.active]?.trace.sent[follow.packet] : undefined;
    return sent !== undefined && sent >= from && sent <= until ? sent : undefined;
  }

  private controls(): void {
    const { store } = this;
    element<HTMLSelectElement>("flow").addEventListener("change", (event) => {
      const { value } = event.target as HTMLSelectElement;
      const [flow, path] = value.split("/");
      store.set({ flow: flow ? Number(flow) : null, path: path ? Number(path) : null });
    });
    element<HTMLSelectElement>("colour").addEventListener("change", (event) => {
      store.set({ colour: (event.target as HTMLSelectElement).value as Colour });
    });
    element<HTMLSelectElement>("filter").addEventListener("change", (event) => {
      const { value } = event.target as HTMLSelectElement;
      store.set(value === "lost" ? { lost: true, marks: 0 } : { lost: false, marks: Number(value) });
    });
    for (const button of document.querySelectorAll<HTMLButtonElement>("[data-set-view]")) {
      button.addEventListener("click", () => store.set({ view: button.dataset.setView as View }));
    }
    element("all").addEventListener("click", () => store.set({ from: 0, until: 0 }));
    element("theme").addEventListener("click", () => this.turnTheme());
    element("help").addEventListener("click", () => element<HTMLDialogElement>("keys").showModal());
    element("full").addEventListener("click", () => void this.loadFull());
  }

  private async loadFull(): Promise<void> {
    if (!this.loadPart) return;
    const span = this.store.span();
    const parts = await Promise.all(this.traces.map((_, index) => this.loadPart?.(index, span)));
    this.replace(this.traces.map((one, index) => ({ name: one.name, trace: parts[index] ?? one.trace })));
  }

  private turnTheme(): void {
    const root = document.documentElement;
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    this.store.request();
  }

  private keyboard(): void {
    const { store } = this;
    const step = (share: number) => {
      const [from, until] = store.span();
      store.pan((until - from) * share);
    };
    const zoom = (factor: number) => {
      const [from, until] = store.span();
      store.zoomAbout(store.cursor ?? this.followedAt(from, until) ?? (from + until) / 2, factor);
    };
    const views: View[] = ["both", "exchange", "timeline"];
    const keys: Record<string, () => void> = {
      ArrowDown: () => step(0.1),
      ArrowUp: () => step(-0.1),
      ArrowRight: () => step(0.1),
      ArrowLeft: () => step(-0.1),
      PageDown: () => step(0.9),
      PageUp: () => step(-0.9),
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      "0": () => store.set({ from: 0, until: 0 }),
      n: () => this.next(1, () => true),
      p: () => this.next(-1, () => true),
      l: () => this.next(1, (trace, i) => trace.fate[i] === Fate.Lost),
      r: () => this.next(1, (trace, i) => (trace.mark[i] & Mark.Retransmitted) !== 0),
      u: () => this.next(1, (trace, i) => (trace.mark[i] & Mark.Useless) !== 0),
      v: () => store.set({ view: views[(views.indexOf(store.shown.view) + 1) % 3] }),
      d: () => this.turnTheme(),
      "?": () => element<HTMLDialogElement>("keys").showModal(),
      Escape: () => store.set({ follow: null, marks: 0, lost: false }),
    };
    window.addEventListener("keydown", (event) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
      if (document.querySelector("dialog[open]")) return;
      const run = keys[event.key];
      if (!run) return;
      event.preventDefault();
      run();
    });
  }

  /** Whatever was followed or filtered. */
  clear(): void {
    this.store.set({ ...INITIAL });
  }
}

/** Dark or light, as the system says. */
export function chooseTheme(): void {
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme ??= dark ? "dark" : "light";
}
