// The pictures of docs/images, of a broker at which a shop works. Taken on demand, `COURSER_PAGE_PICTURES=1 run pictures`: a
// few minutes, in which the charts fill. Look at each of them before it is committed.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Page } from "@playwright/test";
import { amqpPort, api, expect, login, publish, test, visit } from "../support";

const CHARTS_FILL_MS = 150_000;
const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

test.skip(!process.env.COURSER_PAGE_PICTURES, "taken on demand");
test.setTimeout(600_000);
test.use({ viewport: { width: 1200, height: 760 } });

const queue = (name: string, args: object = {}) => ({ name, vhost: "/", durable: true, auto_delete: false, arguments: args });
const exchange = (name: string, type: string) => ({ name, vhost: "/", type, durable: true, auto_delete: false, internal: false, arguments: {} });
const bound = (source: string, kind: "queue" | "exchange", destination: string, key: string) => ({ source, vhost: "/", destination, destination_type: kind, routing_key: key, arguments: {} });

async function build(): Promise<void> {
  const tenants = Array.from({ length: 30 }, (_, nth) => queue(`tenant-${String(nth).padStart(2, "0")}.events`));
  await api("POST", "/api/definitions", {
    exchanges: [exchange("orders", "topic"), exchange("invoices", "direct"), exchange("audit", "fanout"), exchange("dead", "fanout")],
    queues: [
      queue("mails", { "x-dead-letter-exchange": "dead", "x-max-length": 100_000 }),
      queue("billing", { "x-queue-type": "quorum" }),
      queue("log", { "x-queue-type": "stream", "x-max-age": "7D" }),
      queue("search.index"), queue("shipping"), queue("parked"), queue("reports.pending"), ...tenants,
    ],
    bindings: [
      bound("orders", "queue", "mails", "order.#"), bound("orders", "queue", "search.index", "order.#"), bound("orders", "queue", "shipping", "order.packed"),
      bound("orders", "exchange", "invoices", "order.paid"), bound("invoices", "queue", "billing", "order.paid"),
      bound("orders", "exchange", "audit", "#"), bound("audit", "queue", "log", "log"), bound("dead", "queue", "parked", "parked"),
    ],
    policies: [{ name: "limits", vhost: "/", pattern: "^(mails|billing)$", "apply-to": "queues", priority: 0, definition: { "max-length": 200_000, "delivery-limit": 10 } }],
  });
  await api("PUT", "/api/operator-policies/%2F/cap", { pattern: "^mails$", "apply-to": "queues", definition: { "max-length": 150_000 } });
  for (let nth = 0; nth < 40; nth += 1) await publish("reports.pending", JSON.stringify({ report: nth }));
}

/** The picture of what is in sight, whose toasts and pointers are gone. */
async function take(page: Page, name: string): Promise<void> {
  await page.mouse.move(0, 0);
  await page.screenshot({ path: at(`../../../docs/images/page-${name}.png`), animations: "disabled" });
}

test("pictures for the documentation", async ({ page, context }) => {
  await build();
  const shop = spawn(at("../../.cache/python/bin/python"), [at("../shop.py"), String(await amqpPort())], { stdio: ["ignore", "ignore", "inherit"] });
  try {
    await login(page);
    // Each page fills charts of its own.
    const other = await context.newPage();
    await other.goto(page.url());
    await visit(other, "queues/%2F/mails", "mails");
    await page.waitForTimeout(CHARTS_FILL_MS);
    expect(shop.exitCode, "the shop goes on").toBeNull();
    await page.bringToFront();
    await take(page, "overview");
    await other.bringToFront();
    await other.waitForTimeout(1000);
    await take(other, "queue");
    await page.bringToFront();
    await visit(page, "topology?vhost=%2F", "Topology");
    await expect(page.locator(".picture")).toBeVisible();
    // Rates are there with the second answer.
    await page.waitForTimeout(12_000);
    await take(page, "topology");
    await visit(page, "streams/%2F/log?tab=messages", "log");
    await page.waitForTimeout(3000);
    await take(page, "stream");
    await page.emulateMedia({ colorScheme: "dark" });
    await visit(page, "queues", "Queues");
    await page.waitForTimeout(12_000);
    await take(page, "queues");
  } finally {
    shop.kill();
  }
});
