import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";
import solid from "vite-plugin-solid";

// Where the broker is while the page is worked on: `npm run dev`.
const broker = process.env.COURSER_HTTP ?? "http://127.0.0.1:15672";

/** What the licences of the libraries ask for: their texts beside what is made of them. */
function licences(): Plugin {
  const packages = ["@dagrejs/dagre", "@dagrejs/graphlib", "solid-js", "uplot"];
  return {
    name: "licences",
    generateBundle() {
      const texts = packages.map((name) => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}\n`);
      this.emitFile({ type: "asset", fileName: "licences.txt", source: texts.join("\n----\n\n") });
    },
  };
}

export default defineConfig({
  // Relative, so that a proxy may put a path before it.
  base: "./",
  plugins: [solid(), licences()],
  // The broker takes changes from pages of its own origin only.
  server: { proxy: { "/api": { target: broker, changeOrigin: false } } },
  build: {
    outDir: "../crates/management/page",
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rolldownOptions: { checks: { pluginTimings: false } },
  },
});
