// How fast the page is over a large file, and what it takes: node browser/measure.mjs FILE
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { open } from "./browser.mjs";
import { view } from "./command.mjs";

const file = process.argv[2];
const { browser, page } = await open(1400, 900);
const begun = performance.now();
const { url, stop } = await view(file);
const read = performance.now();
await page.goto(url);
await page.waitForSelector("body[data-ready]", { timeout: 120000 });
await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
const shown = performance.now();

/** Turns the wheel and drags over the exchange view, a step a frame; returns each frame's time. */
const frames = await page.evaluate(async () => {
  const canvas = document.querySelector("#exchanges canvas");
  const box = canvas.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true, pointerId: 1 };
  const times = [];
  let last = performance.now();
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  canvas.setPointerCapture = () => {};
  for (let step = 0; step < 240; step++) {
    const phase = Math.floor(step / 60) % 4;
    if (phase % 2 === 0)
      canvas.dispatchEvent(new WheelEvent("wheel", { ...at, deltaY: phase === 0 ? -80 : 80, cancelable: true }));
    else canvas.dispatchEvent(new WheelEvent("wheel", { ...at, deltaY: 6, shiftKey: true, cancelable: true }));
    await frame();
    const now = performance.now();
    times.push(now - last);
    last = now;
  }
  return times.slice(1);
});
frames.sort((a, b) => a - b);
const median = frames[Math.floor(frames.length / 2)];

/** Proportional memory of the tab's process, in megabytes. */
function memory() {
  const lines = execFileSync("ps", ["-eo", "pid,args"], { encoding: "utf8" }).split("\n");
  const tabs = lines.filter((line) => line.includes("--type=renderer") && !line.includes("--extension-process"));
  const sizes = tabs.map((line) => {
    const pid = line.trim().split(/\s+/)[0];
    const pss = /^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"));
    return Number(pss?.[1] ?? 0) / 1024;
  });
  return Math.max(...sizes);
}

const figures = {
  file,
  packets: Number(await page.evaluate(() => document.querySelector("#exchanges canvas").dataset.packets)),
  "command reads, s": (read - begun) / 1000,
  "first picture, s": (shown - begun) / 1000,
  "frames a second, median": 1000 / median,
  "longest frame, ms": frames[frames.length - 1],
  "memory of the tab, MB": memory(),
};
for (const [name, value] of Object.entries(figures))
  console.log(`${name}: ${typeof value === "number" ? Number(value.toFixed(2)) : value}`);
await browser.close();
stop();
