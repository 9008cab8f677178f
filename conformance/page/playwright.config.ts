import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "tests",
  outputDir: "../.cache/page/results",
  // One picture for all systems: the tests bring their font.
  snapshotPathTemplate: "looks/{arg}{ext}",
  timeout: 120_000,
  expect: { timeout: 30_000 },
  workers: 2,
  fullyParallel: true,
  reporter: [["line"], ["json", { outputFile: "../.cache/page/report.json" }]],
  use: {
    viewport: { width: 1280, height: 800 },
    launchOptions: { executablePath: process.env.COURSER_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--font-render-hinting=none", "--disable-lcd-text", "--force-color-profile=srgb"] },
  },
});
