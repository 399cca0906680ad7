import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

/** The page is chosen by the mode: `vite build --mode playground`. */
export default defineConfig(({ mode }) => ({
  plugins: [frame(), oneFile()],
  build: {
    outDir: "dist",
    // The other page lies there too, and what keeps the folder in the tree.
    emptyOutDir: false,
    modulePreload: false,
    target: "es2022",
    rollupOptions: { input: `${mode === "playground" ? "playground" : "view"}.html` },
  },
  test: { include: ["test/**/*.test.ts"] },
}));

const SLIDERS = `<h2>One path, two transports</h2>
  <p>The same transfer by TCP CUBIC and by Fontis' DFCP, over the same path. It runs here, in this page: the protocol code is the real one.</p>
  <form id="sliders"></form>
  <p id="took" class="note"></p>`;

/** Both pages have the same frame. */
function frame(): Plugin {
  return {
    name: "frame",
    transformIndexHtml: {
      order: "pre",
      handler: (html) =>
        html
          .replace("<!--frame-->", () => readFileSync("frame.html", "utf8"))
          .replace("<!--playground-->", () => (html.includes('class="playground"') ? SLIDERS : ""))
          .replace("<!--title-->", () => (html.includes('class="playground"') ? "Fontis" : "PacketViz")),
    },
  };
}

/** Script and style go into the page: one file is all of it, and works without a server. */
function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      for (const page of Object.values(bundle)) {
        if (page.type !== "asset" || !page.fileName.endsWith(".html")) continue;
        let html = String(page.source);
        for (const part of Object.values(bundle)) {
          const name = part.fileName;
          if (part.type === "chunk") {
            // No text may end the script.
            const code = part.code.replaceAll("</script", "<\\/script");
            const tag = new RegExp(`<script[^>]*src="[^"]*${name}"[^>]*></script>`);
            html = html.replace(tag, "").replace("</body>", () => `<script type="module">${code}</script></body>`);
            delete bundle[name];
          } else if (name.endsWith(".css")) {
            const tag = new RegExp(`<link[^>]*href="[^"]*${name}"[^>]*>`);
            html = html.replace(tag, () => `<style>${part.source}</style>`);
            delete bundle[name];
          }
        }
        // Where an exported page's traces and simulator stand; the command knows these words.
        const place = (id: string) => `<script type="application/json" id="${id}">[]</script>`;
        page.source = html.replace("<!--traces-->", () => place("traces")).replace("<!--wasm-->", () => place("wasm"));
      }
    },
  };
}
