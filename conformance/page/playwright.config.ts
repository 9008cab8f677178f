import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "tests",
  outputDir: "../.cache/page/results",
  timeout: 120_000,
  expect: { timeout: 30_000 },
  workers: 2,
  fullyParallel: true,
  reporter: [["line"], ["json", { outputFile: "../.cache/page/report.json" }]],
  use: {
    viewport: { width: 1280, height: 800 },
    launchOptions: { executablePath: process.env.COURSER_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] },
  },
});
