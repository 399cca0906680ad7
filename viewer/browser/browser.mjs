// Debian's Chromium, as these tests want it.
import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export async function open(width = 1400, height = 900, more = []) {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const browser = await chromium.launch({ executablePath, headless: true, args: [...FLAGS, ...more] });
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: "light" });
  return { browser, page };
}
