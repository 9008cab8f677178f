// Every page: it has its heading, no faults, no barriers, in light and dark, on a desk and on a phone.
import { api, barriers, expect, login, makeQueue, publish, test, visit } from "../support";

const PAGES: [string, string | RegExp][] = [
  ["overview", "Overview"],
  ["queues", "Queues"],
  ["queues/%2F/seen", "seen"],
  ["queues/%2F/seen?tab=messages", "seen"],
  ["queues/%2F/seen?tab=unacked", "seen"],
  ["queues/%2F/seen?tab=publish", "seen"],
  ["queues/%2F/seen?tab=bindings", "seen"],
  ["queues/%2F/seen?tab=consumers", "seen"],
  ["streams", "Streams"],
  ["streams/%2F/seen.log", "seen.log"],
  ["streams/%2F/seen.log?tab=messages", "seen.log"],
  ["exchanges", "Exchanges"],
  ["exchanges/%2F/amq.topic", "amq.topic"],
  ["exchanges/%2F/amq.topic?tab=bindings", "amq.topic"],
  ["exchanges/%2F/amq.topic?tab=publish", "amq.topic"],
  ["exchanges/%2F/amq.topic?tab=route", "amq.topic"],
  ["exchanges/%2F/amq.topic?tab=topology", "amq.topic"],
  ["exchanges/%2F/", "(default exchange)"],
  ["topology", "Topology"],
  ["connections", "Connections"],
  ["channels", "Channels"],
  ["consumers", "Consumers"],
  ["vhosts", "Vhosts"],
  ["vhosts/%2F", "/"],
  ["users", "Users"],
  ["users/guest", "guest"],
  ["policies", "Policies"],
  ["policies?kind=operator", "Operator policies"],
  ["limits", "Limits"],
  ["definitions", "Definitions"],
  ["node", "Node"],
  ["trace", "Trace"],
  ["events", "Events"],
  ["audit", "Audit log"],
  ["log", "Log"],
  ["queues/%2F/not-there", "not-there"],
];

test.beforeAll(async () => {
  await makeQueue("seen", { "x-max-length": 100, "x-dead-letter-exchange": "amq.fanout" });
  await makeQueue("seen.log", { "x-queue-type": "stream", "x-max-age": "7D" });
  await api("POST", "/api/bindings/%2F/e/amq.topic/q/seen", { routing_key: "seen.#" });
  await api("PUT", "/api/policies/%2F/for-seen", { pattern: "^seen", "apply-to": "queues", definition: { "max-length": 50 } });
  await api("PUT", "/api/operator-policies/%2F/cap-seen", { pattern: "^seen", "apply-to": "queues", definition: { expires: 86400000 } });
  await api("PUT", "/api/vhost-limits/%2F/max-connections", { value: 5000 });
  for (const nth of [1, 2, 3]) await publish("seen", JSON.stringify({ nth }), { headers: { kind: "test" } });
});

for (const [colorScheme, viewport] of [["light", { width: 1280, height: 800 }], ["dark", { width: 1280, height: 800 }], ["light", { width: 390, height: 844 }]] as const) {
  test.describe(`${colorScheme}, ${viewport.width} wide`, () => {
    test.use({ colorScheme, viewport });
    test("every page is whole and without barriers", async ({ page }, info) => {
      test.setTimeout(180_000);
      await login(page);
      for (const [path, heading] of PAGES) {
        await visit(page, path, heading);
        await expect(page.locator(".loading")).toHaveCount(0);
        await expect(page.getByText("Something went wrong on this page")).toHaveCount(0);
        expect(await barriers(page), path).toEqual([]);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        expect(overflow, `${path} is wider than the window`).toBeLessThanOrEqual(0);
        await info.attach(path, { body: await page.screenshot(), contentType: "image/png" });
      }
    });
  });
}

test("dialogs, the palette and the help have no barriers", async ({ page }) => {
  await login(page);
  for (const [path, heading] of [["queues", "Queues"], ["exchanges", "Exchanges"], ["vhosts", "Vhosts"], ["users", "Users"], ["policies", "Policies"], ["limits", "Limits"]] as const) {
    await visit(page, path, heading);
    await page.keyboard.press("n");
    await expect(page.getByRole("dialog")).toBeVisible();
    expect(await barriers(page), path).toEqual([]);
    await page.keyboard.press("Escape");
    await expect(page.getByRole("dialog")).toBeHidden();
  }
  for (const key of [":", "?"]) {
    await page.keyboard.press(key);
    await expect(page.getByRole("dialog")).toBeVisible();
    expect(await barriers(page), key).toEqual([]);
    await page.keyboard.press("Escape");
    await expect(page.getByRole("dialog")).toBeHidden();
  }
});

test("the overview begins with what needs attention", async ({ page }) => {
  await makeQueue("forgotten");
  for (let nth = 0; nth < 20; nth += 1) await publish("forgotten", "x");
  await login(page);
  const attention = page.getByRole("region", { name: "What needs attention" });
  await expect(attention.getByRole("listitem").filter({ hasText: "forgotten" })).toContainText("without a consumer");
  await attention.getByRole("link", { name: "To forgotten" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "forgotten" })).toBeVisible();
});

test("what needs attention leads to its own queue when the order changes", async ({ page }) => {
  const finding = (queue: string) => ({ severity: "info", kind: "no_consumer", text: `no consumer takes from ${queue}`, since_ms: null, object: { vhost: "/", queue } });
  const findings = [finding("swap.a"), finding("swap.b")];
  let asked = 0;
  await page.route(/\/api\/attention/, (route) => route.fulfill({ json: asked++ === 0 ? findings : [...findings].reverse() }));
  await login(page);
  const first = page.getByRole("region", { name: "What needs attention" }).getByRole("listitem").first();
  await expect(first).toContainText("from swap.a. To swap.a");
  await expect(first).toContainText("from swap.b. To swap.b");
});

test("a queue's page shows how large its messages are, and how many are persistent", async ({ page }) => {
  await makeQueue("sized");
  await publish("sized", "x".repeat(2048), { delivery_mode: 2 });
  await publish("sized", "x".repeat(100), { delivery_mode: 1 });
  await login(page);
  await visit(page, "queues/%2F/sized", "sized");
  const sizes = page.locator("section", { has: page.getByRole("heading", { name: "Size of its messages" }) });
  for (const line of ["All bodies2.1 KiB", "Waiting2.1 KiB", "Unacknowledged0 B", "Persistent1 message, 2 KiB", "In memory1 message, 100 B"]) await expect(sizes).toContainText(line);
  await visit(page, "streams/%2F/seen.log", "seen.log");
  await expect(page.getByRole("heading", { name: "How it was declared" })).toBeVisible();
  await expect(page.getByRole("heading", { name: "Size of its messages" })).toHaveCount(0);
});

test("the theme is chosen and remembered", async ({ page }) => {
  await login(page);
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const before = await back();
  await page.keyboard.press("t");
  await expect.poll(back).not.toBe(before);
  const after = await back();
  await page.reload();
  await expect.poll(back).toBe(after);
});
