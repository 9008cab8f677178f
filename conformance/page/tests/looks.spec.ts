// How the page looks, light and dark, beside pictures of it that were looked at (`looks/`). What is shown is
// the same each time: objects in a vhost of their own, figures of the broker as a whole that are given here, a font of
// the tests' own; what depends on the time and what charts draw is left out. `run --update-snapshots=all looks` renews
// the pictures: look at each of them before it is committed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "@playwright/test";
import { address, api, expect, login, test, visit } from "../support";

const require = createRequire(import.meta.url);
const font = (file: string) => readFileSync(require.resolve(`@fontsource/${file}`));
const FONTS: Record<string, Buffer> = {
  "look-400": font("dejavu-sans/files/dejavu-sans-latin-400-normal.woff2"),
  "look-700": font("dejavu-sans/files/dejavu-sans-latin-700-normal.woff2"),
  "look-mono": font("dejavu-mono/files/dejavu-mono-latin-400-normal.woff2"),
};

const STYLE = `
  @font-face { font-family: "Look"; font-weight: 400; src: url("${address}/look-400"); }
  @font-face { font-family: "Look"; font-weight: 700; src: url("${address}/look-700"); }
  @font-face { font-family: "Look Mono"; src: url("${address}/look-mono"); }
  :root { --mono: "Look Mono" !important; }
  body, button, input, select, textarea { font-family: "Look" !important; }
  .mono, code, pre, kbd { font-family: "Look Mono" !important; }
  .chart-box, .chart-time, time, .answered, .version, .listeners, .toasts { visibility: hidden !important; }
  .chart .legend b { display: none !important; }
  .vhost select, .page-head select { width: 150px !important; }
`;

const VHOST = "looks";
const MESSAGES = 5;

// One after the other: two workers at once would fill the vhost twice.
test.describe.configure({ mode: "default" });
test.use({ bypassCSP: true, viewport: { width: 1200, height: 760 } });

test.beforeAll(async () => {
  await api("PUT", `/api/vhosts/${VHOST}`, {});
  await api("PUT", `/api/permissions/${VHOST}/guest`, { configure: ".*", write: ".*", read: ".*" });
  const queue = (name: string, args: object = {}) => api("PUT", `/api/queues/${VHOST}/${name}`, { durable: true, arguments: args });
  const bind = (from: string, kind: "q" | "e", to: string, key: string) => api("POST", `/api/bindings/${VHOST}/e/${from}/${kind}/${to}`, { routing_key: key });
  for (const [name, type] of [["orders", "topic"], ["invoices", "direct"], ["dead", "fanout"]]) await api("PUT", `/api/exchanges/${VHOST}/${name}`, { type, durable: true });
  await queue("mails", { "x-dead-letter-exchange": "dead", "x-max-length": 10_000 });
  await queue("billing", { "x-queue-type": "quorum" });
  await queue("parked");
  await queue("log", { "x-queue-type": "stream", "x-max-age": "7D" });
  await bind("orders", "q", "mails", "order.#");
  await bind("orders", "e", "invoices", "order.paid");
  await bind("invoices", "q", "billing", "order.paid");
  await bind("dead", "q", "parked", "");
  await bind("orders", "q", "log", "#");
  await api("PUT", `/api/policies/${VHOST}/limits`, { pattern: "^mails$", "apply-to": "queues", definition: { "max-length": 20_000, "message-ttl": 86_400_000 } });
  for (const name of ["mails", "log"]) {
    const { messages } = (await api("GET", `/api/queues/${VHOST}/${name}`)) as { messages: number };
    for (let nth = messages; nth < MESSAGES; nth += 1) {
      await api("POST", `/api/exchanges/${VHOST}//publish`, { routing_key: name, properties: { headers: { attempt: nth } }, payload: JSON.stringify({ order: 4000 + nth, state: "paid" }), payload_encoding: "string" });
    }
    // What was published just now is a rate for a moment.
    const rate = async () => ((await api("GET", `/api/queues/${VHOST}/${name}`)) as { message_stats?: { publish_details?: { rate: number } } }).message_stats?.publish_details?.rate ?? 0;
    await expect.poll(rate).toBe(0);
  }
});

/** What the broker says of itself as a whole: other tests use it at the same time. */
async function fixWhole(page: Page): Promise<void> {
  await page.route("**/api/overview?**", async (route) => {
    const answer = (await (await route.fetch()).json()) as Record<string, unknown>;
    Object.assign(answer, {
      cluster_name: "courser",
      object_totals: { queues: 38, exchanges: 21, connections: 7, channels: 12, consumers: 6 },
      queue_totals: { messages: 7531, messages_ready: 7509, messages_unacknowledged: 22 },
      message_stats: { publish: 91_000, publish_details: { rate: 47.3 }, deliver_get: 90_000, deliver_get_details: { rate: 152 } },
      churn_rates: {},
    });
    await route.fulfill({ json: answer });
  });
  await page.route("**/api/attention", (route) =>
    route.fulfill({
      json: [
        { severity: "critical", kind: "disk_alarm", text: "publishers wait: 40 MiB are free on the disk, and 50 MiB have to be", since_ms: null, object: null },
        { severity: "warning", kind: "unacknowledged", text: "a message of queue 'mails' is held unacknowledged", since_ms: null, object: { vhost: VHOST, queue: "mails" } },
        { severity: "info", kind: "no_consumer", text: "5 messages wait in queue 'mails' without a consumer", since_ms: null, object: { vhost: VHOST, queue: "mails" } },
      ],
    }),
  );
  await page.route("**/api/connections?**", (route) => route.fulfill({ json: { items: [], page: 1, page_count: 1, page_size: 20, filtered_count: 0, total_count: 0 } }));
}

async function prepare(page: Page): Promise<void> {
  for (const [name, body] of Object.entries(FONTS)) await page.route(`**/${name}`, (route) => route.fulfill({ body, contentType: "font/woff2" }));
  // Nothing is asked for twice: what is seen stays.
  await page.addInitScript(() => localStorage.setItem("courser.pace", "0"));
  await fixWhole(page);
}

async function compare(page: Page, name: string): Promise<void> {
  await page.addStyleTag({ content: STYLE });
  await page.evaluate(async () => {
    await Promise.all(["400 14px Look", "700 14px Look", "14px 'Look Mono'"].map((font) => document.fonts.load(font)));
    (document.activeElement as HTMLElement | null)?.blur();
    getSelection()?.removeAllRanges();
  });
  await page.mouse.move(0, 0);
  // Browsers of other versions draw the edges of letters a little differently.
  await expect(page).toHaveScreenshot(`${name}.png`, { maxDiffPixelRatio: 0.005, threshold: 0.25, animations: "disabled" });
}

const PAGES: [string, string, string][] = [
  ["overview", `overview?vhost=${VHOST}`, "Overview"],
  ["queues", `queues?vhost=${VHOST}`, "Queues"],
  ["queue", `queues/${VHOST}/mails?vhost=${VHOST}`, "mails"],
  ["messages", `queues/${VHOST}/mails?vhost=${VHOST}&tab=messages`, "mails"],
  ["stream", `streams/${VHOST}/log?vhost=${VHOST}&tab=messages`, "log"],
  ["topology", `topology?vhost=${VHOST}`, "Topology"],
];

for (const colorScheme of ["light", "dark"] as const) {
  test.describe(colorScheme, () => {
    test.use({ colorScheme });

    test(`login looks as before, ${colorScheme}`, async ({ page }) => {
      await prepare(page);
      await page.goto(address + "/");
      await expect(page.getByRole("button", { name: "Log in" })).toBeVisible();
      await compare(page, `login-${colorScheme}`);
    });

    test(`login beside a provider of tokens looks as before, ${colorScheme}`, async ({ page }) => {
      await prepare(page);
      await page.route("**/api/auth", (route) => route.fulfill({ json: { oauth_enabled: true, oauth_disable_basic_auth: false, oauth_provider_name: "Example" } }));
      await page.goto(`${address}/?state=x&error=access_denied`);
      await expect(page.getByRole("alert")).toBeVisible();
      await compare(page, `login-provider-${colorScheme}`);
    });

    for (const [name, path, heading] of PAGES) {
      test(`${name} looks as before, ${colorScheme}`, async ({ page }) => {
        await prepare(page);
        await login(page);
        await visit(page, path, heading);
        await expect(page.locator(".loading")).toHaveCount(0);
        await compare(page, `${name}-${colorScheme}`);
      });
    }
  });
}
