// Pictures that are kept: another machine's fonts may differ, the picture may not. UPDATE=1 makes
// them anew.
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

/** A channel may differ so much, of so large a part of the pixels. */
const DIFFERENCE = 64;
const PART = 0.03;

export async function compare(page, name) {
  const path = new URL(`golden/${name}.png`, import.meta.url);
  await page.mouse.move(2, 2);
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  const now = await page.screenshot();
  if (process.env.UPDATE || !existsSync(path)) {
    assert.ok(process.env.UPDATE, `${path.pathname} is missing: UPDATE=1 makes it`);
    writeFileSync(path, now);
    return;
  }
  const pictures = [readFileSync(path), now].map((bytes) => `data:image/png;base64,${bytes.toString("base64")}`);
  const part = await page.evaluate(
    async ([pictures, difference]) => {
      const pixels = async (url) => {
        const image = new Image();
        image.src = url;
        await image.decode();
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, image.width, image.height);
      };
      const [one, two] = await Promise.all(pictures.map(pixels));
      if (one.width !== two.width || one.height !== two.height) return 1;
      let differ = 0;
      for (let i = 0; i < one.data.length; i += 4) {
        const far = [0, 1, 2].some((c) => Math.abs(one.data[i + c] - two.data[i + c]) > difference);
        if (far) differ++;
      }
      return differ / (one.data.length / 4);
    },
    [pictures, DIFFERENCE],
  );
  if (part > PART) {
    const seen = `/tmp/fontis-${name}.png`;
    writeFileSync(seen, now);
    assert.fail(`${name}: ${(part * 100).toFixed(1)} % of the pixels differ; what was seen is in ${seen}`);
  }
}
