// How old is what the page shows: a broker that hangs answers no request, and closes no connection either.
import type { Page } from "@playwright/test";
import { OwnBroker } from "../own-broker";
import { barriers, expect, login, test, visit } from "../support";

/** What the broker's process is sent, so that it hangs and goes on. */
async function whileHanging(broker: OwnBroker, look: () => Promise<void>): Promise<void> {
  broker.process.kill("SIGSTOP");
  try {
    await look();
  } finally {
    broker.process.kill("SIGCONT");
  }
}

/** Columns without the line of a chart, between its first column and its last one. */
const gapOf = (page: Page, title: string) =>
  page.locator("figure", { has: page.getByText(title, { exact: true }) }).locator("canvas").evaluate((element) => {
    const canvas = element as HTMLCanvasElement;
    const { data, width, height } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
    // The line's blue is far above its red; a grid and letters are grey.
    const hasLine = Array.from({ length: width }, (_, x) =>
      Array.from({ length: height }, (_, y) => (y * width + x) * 4).some((at) => data[at + 3]! > 200 && data[at + 2]! - data[at]! > 80));
    return hasLine.slice(hasLine.indexOf(true), hasLine.lastIndexOf(true) + 1).filter((one) => !one).length;
  });

test("a broker that hangs is said with the time of its last answer, and is a gap in the charts", async ({ page }) => {
  const broker = await OwnBroker.start({});
  try {
    await login(page, "guest", "guest", broker.address);
    await expect(page.locator(".answered")).toHaveText(/^\d\d:\d\d:\d\d$/);
    const charts = page.locator(".chart-time");
    await expect(page.locator(".chart-wait")).toHaveCount(0);
    await expect(page.locator(".no-broker")).toBeHidden();
    await expect(charts.first()).toHaveText("now");
    await whileHanging(broker, async () => {
      await expect(page.locator(".no-broker")).toContainText(/No answer since \d\d:\d\d:\d\d/);
      await expect(page.locator(".answered")).toHaveClass(/lost/);
      await expect(page.getByText("Nothing needs attention")).toBeHidden();
      await expect(charts.first()).toHaveText(/no samples since \d\d:\d\d:\d\d/);
      expect(await barriers(page)).toEqual([]);
    });
    await expect(page.locator(".no-broker")).toBeHidden();
    await expect(charts.first()).toHaveText("now");
    await expect.poll(() => gapOf(page, "Free disk")).toBeGreaterThan(3);
  } finally {
    await broker.stop();
  }
});

test("a stream of events from a broker that hangs is said to have stopped, and goes on with the broker", async ({ page }) => {
  const broker = await OwnBroker.start({});
  try {
    await login(page, "guest", "guest", broker.address);
    await visit(page, "events", "Events");
    const badge = page.locator(".list-tools .badge");
    await expect(badge).toHaveText("live");
    await whileHanging(broker, async () => {
      await expect(badge).toHaveText("stopped", { timeout: 90_000 });
      expect(await barriers(page)).toEqual([]);
    });
    await expect(badge).toHaveText("live");
  } finally {
    await broker.stop();
  }
});

test("a list that is never answered is given up, while the broker is not said to be gone", async ({ page }) => {
  await page.route("**/api/queues?**", () => undefined);
  await login(page);
  await visit(page, "queues", "Queues");
  await expect(page.getByRole("alert")).toContainText("No answer within 10 s");
  await expect(page.locator(".no-broker")).toBeHidden();
  expect(await barriers(page)).toEqual([]);
});
