// Takes a picture of a page: node browser/shot.mjs URL OUT.png [WIDTH HEIGHT]
import { open } from "./browser.mjs";

const [url, out, width = "1400", height = "900"] = process.argv.slice(2);
const { browser, page } = await open(Number(width), Number(height));
page.on("console", (message) => console.log(message.text()));
page.on("pageerror", (error) => console.log(String(error)));
await page.goto(url);
await page.waitForSelector("body[data-ready]", { timeout: 30000 });
await page.waitForTimeout(300);
await page.screenshot({ path: out });
await browser.close();
