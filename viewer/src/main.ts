/** The page of `fontis view`. */

import { App, chooseTheme } from "./app";
import { embedded, info, type Named, served } from "./load";
import { Simulator } from "./simulator";
import { fromHash, INITIAL, toHash } from "./state";

/** How often a live trace is asked for, in milliseconds. */
const LIVE = 1000;
/** Reading and drawing take this part of the time at most. */
const PATIENCE = 3;

async function begin(): Promise<void> {
  chooseTheme();
  const status = document.getElementById("status");
  let traces: Named[] = await embedded();
  const isExported = traces.length > 0;
  const known = isExported ? null : await info();
  if (known) {
    const all = known.traces.map(async ({ title }, index) => ({ name: title, trace: await served(index) }));
    traces = await Promise.all(all);
  }
  const remember = (shown: Parameters<typeof toHash>[0]) => {
    history.replaceState(null, "", toHash(shown) || window.location.pathname + window.location.search);
  };
  const app = new App(traces, fromHash(window.location.hash), remember, isExported ? undefined : served);
  window.addEventListener("hashchange", () => app.store.set(fromHash(window.location.hash)));
  if (status) status.hidden = true;
  if (!isExported) takeDropped(app);
  document.body.dataset.ready = "true";
  if (known?.live)
    follow(
      app,
      known.traces.map(({ version }) => version),
    );
}

/** Shows what has come since, again and again. */
function follow(app: App, versions: string[]): void {
  const status = document.getElementById("live");
  if (status) status.hidden = false;
  let last = versions;
  const ask = async () => {
    const begun = performance.now();
    try {
      const now = await info();
      const next = now.traces.map(({ version }) => version);
      if (next.join() !== last.join()) {
        last = next;
        app.replace(await Promise.all(now.traces.map(async ({ title }, index) => ({ name: title, trace: await served(index) }))));
      }
      // What takes long to read is asked for less often.
      setTimeout(ask, Math.max(LIVE, (performance.now() - begun) * PATIENCE));
    } catch (error) {
      // Who serves is gone, or a file was just being replaced.
      if (error instanceof TypeError) {
        if (status) status.textContent = "ended";
      } else setTimeout(ask, LIVE);
    }
  };
  setTimeout(ask, LIVE);
}

/** Files that are dropped on the page are read in it. */
function takeDropped(app: App): void {
  const mark = (isOver: boolean) => document.body.classList.toggle("dropping", isOver);
  window.addEventListener("dragover", (event) => {
    event.preventDefault();
    mark(true);
  });
  window.addEventListener("dragleave", () => mark(false));
  window.addEventListener("drop", async (event) => {
    event.preventDefault();
    mark(false);
    const files = [...(event.dataTransfer?.files ?? [])].slice(0, 4);
    if (!files.length) return;
    const tell = document.getElementById("status");
    try {
      const simulator = await Simulator.load();
      const traces: Named[] = [];
      for (const file of files) {
        try {
          traces.push({ name: file.name, trace: simulator.read(new Uint8Array(await file.arrayBuffer())) });
        } catch (error) {
          throw new Error(`${file.name}: ${(error as Error).message}`);
        }
      }
      app.store.set({ ...INITIAL, view: app.store.shown.view });
      app.take(traces);
      if (tell) tell.hidden = true;
    } catch (error) {
      if (!tell) return;
      tell.hidden = false;
      tell.textContent = `This cannot be shown: ${(error as Error).message}`;
    }
  });
}

begin().catch((error: Error) => {
  const status = document.getElementById("status");
  if (status) {
    status.textContent = `This cannot be shown: ${error.message}`;
    status.setAttribute("role", "alert");
  }
});
