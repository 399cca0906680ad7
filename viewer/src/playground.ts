/** The playground: CUBIC and DFCP over the same path, simulated in the page by protocol code. */

import { App, chooseTheme } from "./app";
import { QUEUES, SETTINGS, scenario, toStep, toValue } from "./scenario";
import { Simulator } from "./simulator";
import { fromHash, toHash } from "./state";
import type { Trace } from "./trace";

const PROTOCOLS = ["cubic", "dfcp"];
const NAMES = ["TCP CUBIC", "DFCP"];

async function begin(): Promise<void> {
  chooseTheme();
  const place = document.getElementById("sliders");
  const status = document.getElementById("status");
  if (!place || !status) return;
  const simulator = await Simulator.load();
  const linked = new URLSearchParams(window.location.hash.replace(/^#/, ""));
  const values: Record<string, number> = {};
  const queue = document.createElement("select");
  let app: App | undefined;

  /** Sliders and view, as a link. */
  const remember = () => {
    const parts = SETTINGS.map(({ name }) => `${name}=${values[name]}`);
    if (queue.value !== QUEUES[0]) parts.push(`queue=${queue.value}`);
    const view = app ? toHash(app.store.shown).slice(1) : "";
    if (view) parts.push(view);
    history.replaceState(null, "", `#${parts.join("&")}`);
  };
  const run = () => {
    const begun = performance.now();
    try {
      const traces = PROTOCOLS.map((protocol) => simulator.simulate(scenario(values, queue.value, protocol)));
      const named = traces.map((trace, index) => ({ name: `${NAMES[index]}: ${outcome(trace, values.size)}`, trace }));
      if (app) {
        app.store.set({ from: 0, until: 0, follow: null });
        app.replace(named);
      } else app = new App(named, fromHash(window.location.hash), remember);
      for (const [index, caption] of document.querySelectorAll("figcaption").entries()) caption.textContent = named[index].name;
      const packets = traces.reduce((sum, trace) => sum + trace.total, 0);
      status.hidden = true;
      const took = document.getElementById("took");
      if (took) took.textContent = `${packets} packets simulated in ${Math.round(performance.now() - begun)} ms`;
      document.body.dataset.ready = "true";
      document.body.dataset.runs = String(Number(document.body.dataset.runs ?? 0) + 1);
    } catch (error) {
      status.hidden = false;
      status.textContent = `The simulation failed: ${(error as Error).message}`;
    }
  };
  let waiting = 0;
  const soon = () => {
    remember();
    clearTimeout(waiting);
    waiting = window.setTimeout(run, 150);
  };

  for (const setting of SETTINGS) {
    const label = document.createElement("label");
    const output = document.createElement("output");
    const input = document.createElement("input");
    Object.assign(input, { type: "range", min: "0", max: "1000", name: setting.name });
    const wanted = Number(linked.get(setting.name) ?? Number.NaN);
    const isFine = wanted >= setting.low && wanted <= setting.high;
    input.value = String(toStep(setting, isFine ? wanted : setting.initial));
    const tell = () => {
      values[setting.name] = toValue(setting, Number(input.value));
      output.textContent = `${values[setting.name]} ${setting.unit}`;
    };
    input.addEventListener("input", () => {
      tell();
      soon();
    });
    tell();
    label.append(`${setting.label} `, output, input);
    place.append(label);
  }
  const label = document.createElement("label");
  queue.name = "queue";
  for (const name of QUEUES) queue.add(new Option(name, name));
  const wanted = linked.get("queue");
  if (wanted && QUEUES.includes(wanted)) queue.value = wanted;
  queue.addEventListener("change", soon);
  label.append("Queue ", queue);
  place.append(label);
  run();
}

/** How long the transfer took, and how fast that is. */
function outcome(trace: Trace, megabytes: number): string {
  const took = trace.end / 1e9;
  return took > 59.5 ? "not done after 60 s" : `${took.toFixed(2)} s, ${((megabytes * 8) / took).toFixed(1)} Mbit/s`;
}

begin().catch((error: Error) => {
  const status = document.getElementById("status");
  if (status) status.textContent = `The playground cannot be shown: ${error.message}`;
});
