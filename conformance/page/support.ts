// What the tests share: a broker of their own, its HTTP API, and a page that is logged in.
import { expect, test as base, type Page } from "@playwright/test";
import axe from "axe-core";

export const address = process.env.COURSER_PAGE_ADDRESS ?? "";

/** A request past the page. */
export async function api(method: string, path: string, body?: unknown, credentials = "guest:guest"): Promise<unknown> {
  const answer = await fetch(address + path, {
    method,
    headers: { authorization: `Basic ${btoa(credentials)}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

export const publish = (queue: string, payload: string, properties: object = {}) =>
  api("POST", "/api/exchanges/%2F//publish", { routing_key: queue, properties, payload, payload_encoding: "string" });

export const makeQueue = (name: string, args: object = {}) => api("PUT", `/api/queues/%2F/${encodeURIComponent(name)}`, { durable: true, arguments: args });

/** Where clients connect. */
export async function amqpPort(): Promise<number> {
  const { listeners } = (await api("GET", "/api/overview?columns=listeners")) as { listeners: { protocol: string; port: number }[] };
  return listeners.find((one) => one.protocol === "amqp")!.port;
}

interface Queue {
  messages: number;
  consumers: number;
  type: string;
  arguments: Record<string, unknown>;
}

export const queue = (name: string) => api("GET", `/api/queues/%2F/${encodeURIComponent(name)}`) as Promise<Queue>;

export async function login(page: Page, user = "guest", password = user, at = address): Promise<void> {
  await page.goto(at + "/");
  await page.getByLabel("User").fill(user);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
}

/** Goes to an address inside of the page, and waits until the page has heard of it: its heading may stay the same. */
export async function visit(page: Page, path: string, heading: string | RegExp): Promise<void> {
  await page.evaluate(
    (hash) =>
      new Promise<void>((done) => {
        const before = location.href;
        addEventListener("hashchange", () => done(), { once: true });
        location.hash = hash;
        if (location.href === before) done();
      }),
    `#/${path}`,
  );
  await expect(page.getByRole("heading", { level: 1, name: heading })).toBeVisible();
}

/** Reports of the browser that no test expects: a refused login is said by its status. */
export const test = base.extend<{ faults: string[] }>({
  faults: [
    async ({ page }, use) => {
      const faults: string[] = [];
      page.on("pageerror", (error) => faults.push(String(error)));
      page.on("console", (message) => {
        if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) faults.push(message.text());
      });
      await use(faults);
      expect(faults, "the browser reports faults").toEqual([]);
    },
    { auto: true },
  ],
});

/** What axe finds wrong with a page, as text. */
export async function barriers(page: Page): Promise<string[]> {
  // Scripts of the tests come in past the policy, as those of a browser's tools do.
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const axe = (globalThis as unknown as { axe: { run: () => Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }> } }).axe;
    const { violations } = await axe.run();
    return violations.flatMap((one) => one.nodes.slice(0, 3).map((node) => `${one.id}: ${node.html.slice(0, 200)} ${node.failureSummary}`));
  });
}

export { expect };
