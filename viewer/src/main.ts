/** The page of `fontis view`. */

import { App, chooseTheme } from "./app";
import { embedded, info, type Named, served } from "./load";
import { fromHash, toHash } from "./state";

/** How often a live trace is asked for, in milliseconds. */
const LIVE = 1000;

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
    try {
      const now = await info();
      const next = now.traces.map(({ version }) => version);
      if (next.join() !== last.join()) {
        last = next;
        app.replace(await Promise.all(now.traces.map(async ({ title }, index) => ({ name: title, trace: await served(index) }))));
      }
      setTimeout(ask, LIVE);
    } catch {
      if (status) status.textContent = "ended";
    }
  };
  setTimeout(ask, LIVE);
}

begin().catch((error: Error) => {
  const status = document.getElementById("status");
  if (status) {
    status.textContent = `This cannot be shown: ${error.message}`;
    status.setAttribute("role", "alert");
  }
});
