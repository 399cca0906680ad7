// The real page over real files, in Debian's Chromium: node --test viewer/browser/page.test.mjs
import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { open } from "./browser.mjs";
import { run, start, view } from "./command.mjs";
import { compare } from "./golden.mjs";

const folder = mkdtempSync(join(tmpdir(), "fontis-view-"));
const scenario = (id, protocol) => `
[scenario]
id = "${id}"
duration = "20 s"
until_done = true
[topology]
rate = "10 Mbit/s"
rtt = "60 ms"
buffer = "1 BDP"
loss = "2%"
[dfcp]
rate = "auto"
[[flow]]
name = "bulk"
protocol = "${protocol}"
app = "object"
size = "2 MB"
`;
const swarm = (id, peers) => `
[scenario]
id = "${id}"
duration = "300 s"
[swarm]
peers = ${peers}
blocks = 64
up_ratio = 8
liars = 1
`;
const recording = (id) => join(folder, id, "00000");

let browser;
let page;
const stops = [];

before(async () => {
  for (const [id, protocol] of [
    ["TCP", "cubic"],
    ["DFCP", "dfcp"],
  ]) {
    const file = join(folder, `${id}.toml`);
    writeFileSync(file, scenario(id, protocol));
    await run("sim", file, "--packets", "--pcap", "--seed", "3", "-o", folder);
  }
  for (const [id, peers] of [
    ["SWARM", 24],
    ["CROWD", 1000],
  ]) {
    const file = join(folder, `${id}.toml`);
    writeFileSync(file, swarm(id, peers));
    await run("sim", file, "--packets", "--seed", "3", "-o", folder);
  }
  ({ browser, page } = await open(1200, 800));
});
after(async () => {
  await browser?.close();
  for (const stop of stops) stop();
  rmSync(folder, { recursive: true });
});

/** Shows files; what the page complains of fails the test. */
async function show(hash, ...args) {
  const { url, stop } = await view(...args);
  stops.push(stop);
  await page.close();
  page = await browser.newPage({ viewport: { width: 1200, height: 800 }, colorScheme: "light" });
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  await page.goto(url + hash);
  await page.waitForSelector("body[data-ready]", { timeout: 20_000 });
  await drawn();
  return { url, problems };
}

const drawn = () => page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
const ladder = (index = 0) => page.locator("#exchanges canvas").nth(index);
const hash = () => new URL(page.url()).hash;
const key = async (name) => {
  await page.keyboard.press(name);
  await drawn();
};

/** Waits until something holds; the page's policy forbids waiting in it. */
async function until(what, holds) {
  for (let tries = 0; tries < 200; tries++) {
    if (await holds()) return;
    await page.waitForTimeout(100);
  }
  assert.fail(`never: ${what}`);
}

/** Moves the pointer down a line across the lanes until it is over a packet. */
async function overPacket() {
  const box = await ladder().boundingBox();
  for (let y = box.y + 120; y < box.y + box.height - 20; y += 3) {
    await page.mouse.move(box.x + box.width * 0.3, y);
    if (await page.locator("#tip").isVisible()) return;
  }
  assert.fail("no packet under the pointer");
}

test("a recording opens, from far as density, from near as lines", async () => {
  const { problems } = await show("", recording("DFCP"));
  assert.match(await page.title(), /^DFCP · PacketViz$/);
  assert.equal(await ladder().getAttribute("data-mode"), "density");
  assert.match(await ladder().getAttribute("aria-label"), /exchange between 3 lanes from 0/);
  const box = await ladder().boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  for (let turn = 0; turn < 8; turn++) await page.mouse.wheel(0, -300);
  await drawn();
  assert.equal(await ladder().getAttribute("data-mode"), "lines");
  assert.match(hash(), /^#t=[\d.]+-[\d.]+$/);
  await key("0");
  assert.equal(hash(), "");
  assert.deepEqual(problems, []);
});

test("a packet is hovered, followed, and so is its block; the link shows the same again", async () => {
  await show("#t=0.3-0.36", recording("DFCP"));
  await overPacket();
  assert.match(await page.locator("#tip").innerText(), /packet[\s\S]*sent[\s\S]*block/);
  await page.mouse.down();
  await page.mouse.up();
  await drawn();
  assert.match(hash(), /packet=\d+/);
  const followed = page.locator("#followed");
  assert.match(await followed.innerText(), /at bottleneck/);
  await followed.getByRole("button", { name: "follow its block" }).click();
  await drawn();
  assert.match(hash(), /block=0\.\d+\.\d+/);
  const text = await followed.innerText();
  assert.match(text, /symbols needed/);
  await page.reload();
  await page.waitForSelector("body[data-ready]");
  await drawn();
  assert.equal(await followed.innerText(), text);
});

test("keys move, zoom, and go to the next lost packet", async () => {
  await show("", recording("TCP"));
  await key("l");
  assert.match(await page.locator("#followed").innerText(), /lost\s+at bottleneck/);
  const first = hash();
  await key("l");
  assert.notEqual(hash(), first);
  await key("r");
  assert.match(await page.locator("#followed").innerText(), /retransmitted/);
  await key("+");
  // About what is followed.
  const [from, until] = /t=([\d.]+)-([\d.]+)/.exec(hash()).slice(1).map(Number);
  const sent = Number(/sent\s+([\d.]+) s/.exec(await page.locator("#followed").innerText())[1]);
  assert.ok(from <= sent && sent <= until, `${from} ${sent} ${until}`);
  const zoomed = hash();
  await key("ArrowDown");
  assert.notEqual(hash(), zoomed);
  await key("v");
  assert.match(hash(), /view=exchange/);
  assert.equal(await page.locator("#timeline").isVisible(), false);
  await key("d");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await key("?");
  assert.equal(await page.locator("#keys").isVisible(), true);
  await key("Escape");
  assert.equal(await page.locator("#keys").isVisible(), false);
  await key("Escape");
  assert.doesNotMatch(hash(), /packet=/);
});

test("a finding leads to its place", async () => {
  await show("", recording("TCP"));
  const finding = page.locator("#findings a", { hasText: "of packets were lost" });
  assert.match(await finding.innerText(), /all of them at bottleneck/);
  await finding.click();
  await drawn();
  assert.match(hash(), /lost=1/);
  assert.equal(await page.locator("#filter").inputValue(), "lost");
});

test("the timeline has all its panels on one axis, and one cursor", async () => {
  await show("#view=timeline", recording("DFCP"));
  const titles = await page.locator("#timeline h3").allInnerTexts();
  for (const wanted of ["Sequence, symbols", "Blocks", "Rate", "Round-trip time", "Window", "Queue"]) {
    assert.ok(
      titles.some((title) => title.startsWith(wanted)),
      `${wanted} among ${titles.join("; ")}`,
    );
  }
  const box = await page.locator("#timeline canvas").first().boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 50);
  await drawn();
  const times = await page.locator("#timeline .u-series:first-child .u-value").allInnerTexts();
  assert.ok(times.length >= 4 && times.every((time) => Math.abs(Number(time) - Number(times[0])) < 0.15), times.join(" "));
});

test("two runs are compared on one clock", async () => {
  await show("", recording("TCP"), recording("DFCP"));
  assert.equal(await page.locator("#exchanges canvas").count(), 2);
  assert.deepEqual(await page.locator("figcaption").allInnerTexts(), ["TCP", "DFCP"]);
  await key("+");
  const spans = await Promise.all([0, 1].map((index) => ladder(index).getAttribute("aria-label")));
  const of = (label) => /from (\S+ s) to (\S+ s)/.exec(label).slice(1);
  assert.deepEqual(of(spans[0]), of(spans[1]));
  // What both have delivered lies in one plot, and the legend is of both.
  const delivered = page.locator("#timeline section").first();
  assert.match(await delivered.innerText(), /Delivered, B[\s\S]*TCP: delivered[\s\S]*DFCP: delivered/);
  assert.match(await page.locator("#legend").innerText(), /repair/);
});

test("a capture shows what the simulator's sender sent", async () => {
  await show("", join(recording("TCP"), "packets.pcapng"));
  const note = await page.locator("#findings .note").first().innerText();
  const truth = await run("view", recording("TCP"), "--svg", join(folder, "all.svg"));
  const [packets] = /\d+(?= packets)/.exec(truth);
  assert.match(note, new RegExp(`, ${packets} packets, `));
});

test("an exported page is whole, asks nobody for anything, and shows the same", async () => {
  const { problems } = await show("#t=0.2-0.5", recording("DFCP"));
  const label = await ladder().getAttribute("aria-label");
  const out = join(folder, "out.html");
  await run("view", recording("DFCP"), "--export", out);
  const asked = [];
  page.on("request", (request) => request.url().startsWith("http") && asked.push(request.url()));
  await page.goto(`${pathToFileURL(out)}#t=0.2-0.5`);
  await page.waitForSelector("body[data-ready]");
  await drawn();
  assert.equal(await ladder().getAttribute("aria-label"), label);
  assert.deepEqual([asked, problems], [[], []]);
});

test("a file that is dropped on the page is read in it", async () => {
  await show("", recording("DFCP"));
  const bytes = readFileSync(join(recording("TCP"), "packets.pcapng")).toString("base64");
  const drop = (name, content) =>
    page.evaluate(
      ([name, content]) => {
        const data = new DataTransfer();
        data.items.add(new File([Uint8Array.from(atob(content), (c) => c.charCodeAt(0))], name));
        window.dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true }));
      },
      [name, content],
    );
  await drop("dropped.pcapng", bytes);
  await until("the dropped file is shown", async () => (await page.title()).startsWith("dropped.pcapng"));
  await drop("no.txt", btoa("nothing that is known"));
  const status = page.locator("#status");
  await until("what is wrong is said", async () => (await status.textContent()).includes("no.txt: it is no trace"));
});

test("what is being written is followed", async () => {
  const whole = readFileSync(join(recording("TCP"), "packets.pcapng"));
  const growing = join(folder, "growing.pcapng");
  writeFileSync(growing, whole.subarray(0, whole.length / 2));
  await show("", "--live", growing);
  assert.equal(await page.locator("#live").isVisible(), true);
  const count = async () => Number(/(\d+) packets/.exec(await page.locator("#findings .note").first().innerText())[1]);
  const half = await count();
  appendFileSync(growing, whole.subarray(whole.length / 2));
  await until("the rest is shown", async () => (await count()) > half * 1.5);
});

/** Fetches a file over a path that loses 2 % of packets; returns the qlog's folder and its end. */
async function fetchLossy(name, rate) {
  const served = join(folder, `${name}-served`);
  const logs = join(folder, `${name}-logs`);
  mkdirSync(served);
  writeFileSync(join(served, "file"), Buffer.alloc(3_000_000, 7));
  const server = await start("serve", served, "--listen", "127.0.0.1:0", "--identity", join(folder, "identity"));
  const to = new URL(server.line.replace("fontis:", "http:")).host;
  const relay = await start("relay", "--json", "--to", to, "--rate", rate, "--delay", "20ms", "--loss", "2%", "--seed", "3");
  stops.push(server.stop, relay.stop);
  const url = server.line.replace(to, JSON.parse(relay.line).listening).replace("/?", "/file?");
  return { logs, done: run("get", "--qlog", logs, url, join(folder, `${name}-got`)) };
}

test("a real transfer over a lossy path shows its blocks, and what was sent beyond them", async () => {
  const { logs, done } = await fetchLossy("whole", "40mbit");
  await done;
  const { problems } = await show("", logs);
  const titles = (await page.locator("#timeline h3").allInnerTexts()).join("; ");
  assert.match(titles, /Sequence, symbols.*decoded.*Blocks, symbols received of those needed.*Delivered/);
  const blocks = page.locator("#timeline canvas").nth(1);
  assert.match(await blocks.getAttribute("aria-label"), /^\d+ blocks of symbols/);
  assert.match(await page.locator("#findings").innerText(), /of packets were lost/);
  // The block of the middle.
  const box = await blocks.boundingBox();
  await page.mouse.click(box.x + box.width / 2, box.y + 6 + 14 * 3.5);
  await drawn();
  assert.match(hash(), /block=0\.\d+\.1/);
  assert.match(await page.locator("#followed").innerText(), /^Block 1: \d+ symbols needed, .*\d+ arrived/);
  await page.locator("#filter").selectOption({ label: "redundant" });
  await page.locator("#colour").selectOption("block");
  await drawn();
  assert.match(hash(), /marks=2/);
  assert.deepEqual(problems, []);
});

test("a real transfer under way is followed, block after block", async () => {
  const { logs, done } = await fetchLossy("live", "8mbit");
  await show("#view=timeline", "--live", logs);
  assert.equal(await page.locator("#live").isVisible(), true);
  const blocks = async () =>
    Number(/^(\d+) blocks?/.exec((await page.locator("#timeline canvas").nth(1).getAttribute("aria-label")) ?? "")?.[1]);
  const first = await blocks();
  await done;
  await until("its last block is shown", async () => (await blocks()) >= Math.max(first, 4));
});

test("a swarm shows who fed whom, and who lied", async () => {
  const { problems } = await show("", recording("SWARM"));
  assert.match(await ladder().getAttribute("aria-label"), /who fed each of 25 nodes/);
  assert.equal(await ladder().getAttribute("data-mode"), "bars");
  assert.equal(await page.locator("#colour").inputValue(), "sender");
  const findings = await page.locator("#findings").innerText();
  assert.match(findings, /25 nodes, \d+ blocks/);
  assert.match(findings, /origin was the bottleneck until [\d.]+ s/);
  assert.match(findings, /peer \d+ fed \d/);
  assert.match(findings, /peer \d+ sent \d+ blocks that are wrong/);
  await overPacket();
  assert.match(await page.locator("#tip").innerText(), /block\s+\d+, 1048576 B\s+from\s+(origin|peer)/);
  // What one node gave.
  await page.locator("#flow").selectOption("0");
  await drawn();
  const some = Number(await ladder().getAttribute("data-packets"));
  assert.ok(some >= 64 && some < 24 * 64, String(some));
  assert.deepEqual(problems, []);
});

test("a swarm of a thousand is drawn pixel by pixel", async () => {
  const { problems } = await show("#view=exchange", recording("CROWD"));
  assert.match(await ladder().getAttribute("aria-label"), /who fed each of 1001 nodes/);
  assert.equal(await ladder().getAttribute("data-mode"), "density");
  assert.ok(Number(await ladder().getAttribute("data-packets")) >= 64_000);
  for (let i = 0; i < 7; i++) await key("+");
  assert.equal(await ladder().getAttribute("data-mode"), "bars");
  assert.deepEqual(problems, []);
});

test("the playground simulates in the page, also as one file without a server", async () => {
  const out = join(folder, "index.html");
  await run("view", "--playground", "--export", out);
  await page.goto(`${pathToFileURL(out)}#rate=10&size=0.5`);
  await page.waitForSelector("body[data-ready]", { timeout: 20_000 });
  assert.match(await page.locator("#sliders").innerText(), /10 Mbit\/s/);
  const captions = page.locator("figcaption");
  const before = await captions.allInnerTexts();
  assert.match(before.join(), /TCP CUBIC: [\d.]+ s.*DFCP: [\d.]+ s/);
  await page.locator("input[name=loss]").fill("900");
  const runs = () => page.evaluate(() => document.body.dataset.runs);
  await until("it has run again", async () => (await runs()) === "2");
  assert.notDeepEqual(await captions.allInnerTexts(), before);
  assert.match(hash(), /loss=9/);
});

test("everything that is to be used has a name for those who do not see it", async () => {
  await show("", recording("DFCP"));
  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll("button, select, input, canvas, [role=img]")]
      .filter((one) => !one.getAttribute("aria-label") && !one.textContent.trim() && !one.labels?.length)
      .filter((one) => !one.closest(".u-wrap") || one.matches("[role=img]"))
      .map((one) => one.outerHTML.slice(0, 80)),
  );
  assert.deepEqual(nameless, []);
});

test("pictures are as they were", async () => {
  await show("#t=0.3-0.33&view=exchange", recording("DFCP"));
  await compare(page, "exchange");
  await show("#view=timeline", recording("DFCP"));
  await compare(page, "timeline");
  await show("", recording("TCP"), recording("DFCP"));
  await compare(page, "compare");
  await show("#view=exchange", recording("SWARM"));
  await compare(page, "swarm");
});
