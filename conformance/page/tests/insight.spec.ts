// What happens and what has happened: events, the audit log, the way of a message, what a file would change.
import { publishAll } from "../crowd";
import { address, amqpPort, api, barriers, expect, login, makeQueue, publish, queue, test, visit } from "../support";

test.beforeEach(async ({ page }) => login(page));

test("events appear as they happen, are chosen and held", async ({ page }) => {
  await visit(page, "events", "Events");
  await expect(page.getByText("live", { exact: true })).toBeVisible();
  await page.getByRole("searchbox").fill("happening");
  await makeQueue("happening-1");
  await expect(page.getByRole("row", { name: /queue\.created .*happening-1/ })).toBeVisible();
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Hold" }).click();
  await makeQueue("happening-2");
  await expect(page.getByRole("button", { name: /Continue \(\d/ })).toBeVisible();
  await expect(page.getByRole("row", { name: /happening-2/ })).toHaveCount(0);
  await page.getByRole("button", { name: /Continue/ }).click();
  await expect(page.getByRole("row", { name: /happening-2/ })).toBeVisible();
  await page.getByLabel("Kinds").selectOption("vhost.");
  await expect(page.getByText("live", { exact: true })).toBeVisible();
  await expect(page.getByRole("row", { name: /happening/ })).toHaveCount(0);
  await makeQueue("happening-3");
  await api("PUT", "/api/vhosts/happening", {});
  await expect(page.getByRole("row", { name: /vhost\.created/ })).toBeVisible();
  await expect(page.getByRole("row", { name: /happening-3/ })).toHaveCount(0);
  expect(page.url()).toContain("kind=vhost.");
});

test("events go on when the connection was lost", async ({ page }) => {
  let attempts = 0;
  await page.route("**/api/events*", (route) => (++attempts === 1 ? route.abort() : route.continue()));
  await visit(page, "events", "Events");
  await expect(page.getByText("live", { exact: true })).toBeVisible();
  expect(attempts).toBeGreaterThan(1);
});

test("who may not follow the events is told so", async ({ page, context }) => {
  await api("PUT", "/api/users/unheard", { password: "unheard", tags: "management" });
  await context.clearCookies();
  await login(page, "unheard");
  for (const path of ["events", "audit"]) {
    await page.evaluate((hash) => (location.hash = hash), `#/${path}`);
    await expect(page.getByRole("alert").first()).toContainText("Not allowed");
  }
});

test("the audit log says who did what, and what was refused", async ({ page }) => {
  await api("PUT", "/api/users/clerk", { password: "clerk", tags: "management" });
  await api("PUT", "/api/permissions/%2F/clerk", { configure: "^$", write: "^$", read: "^$" });
  await expect(api("PUT", "/api/queues/%2F/not-for-clerks", {}, "clerk:clerk")).rejects.toThrow("401");
  await visit(page, "audit", "Audit log");
  await page.getByRole("searchbox").fill("clerk put not-for");
  const row = page.getByRole("row", { name: /not-for-clerks/ });
  await expect(row).toContainText("/api/queues/%2F/not-for-clerks");
  await expect(row).toContainText("401");
  await page.getByLabel("What came of it").selectOption("done");
  await expect(row).toHaveCount(0);
  expect(await barriers(page)).toEqual([]);
  await expect(page.getByRole("region", { name: "Logins since the start" }).getByRole("row", { name: /http/ })).toBeVisible();
});

test("older lines of the audit log are reached page by page, and the search finds them", async ({ page }) => {
  for (let nth = 0; nth < 55; nth += 1) await makeQueue(`paged-${nth}-`);
  await visit(page, "audit?size=50&name=paged-", "Audit log");
  const row = (nth: number) => page.getByRole("row", { name: new RegExp(`paged-${nth}-`) });
  await expect(row(54)).toBeVisible();
  await expect(row(4)).toHaveCount(0);
  await page.getByRole("button", { name: "Older" }).click();
  await expect(row(4)).toBeVisible();
  await expect(row(54)).toHaveCount(0);
  expect(page.url()).toContain("page=2");
  await expect(page.getByRole("button", { name: "Older" })).toBeDisabled();
  await page.getByRole("button", { name: "Newer" }).click();
  await expect(row(54)).toBeVisible();
  await page.getByRole("searchbox").fill("paged-3- put");
  await expect(row(3)).toBeVisible();
  await expect(page.locator("main tbody").first().locator("tr")).toHaveCount(1);
});

test("the node says how often and how long the disk syncs", async ({ page }) => {
  let asked = 0;
  await page.route("**/api/nodes?**", async (route) => {
    const nodes = (await (await route.fetch()).json()) as object[];
    asked += 1;
    await route.fulfill({ json: nodes.map((node) => ({ ...node, io_sync_count: 1000 + 100 * asked, io_sync_avg_time: (4000 + 25 * asked) / (1000 + 100 * asked) })) });
  });
  await page.reload();
  await visit(page, "node", "Node");
  const time = page.locator(".chart", { hasText: "Time of a sync" });
  await expect(time.locator(".legend b")).toHaveText("250 µs");
  await expect(page.locator(".chart", { hasText: "Syncs of the journal" }).locator(".legend b")).toHaveText(/^[1-9][\d.]*\/s$/);
  expect(await barriers(page)).toEqual([]);
});

test("what a file of definitions would change is said before it is loaded", async ({ page }) => {
  await makeQueue("compared", { "x-max-length": 5 });
  await api("PUT", "/api/policies/%2F/compared", { pattern: "^compared$", "apply-to": "queues", definition: { expires: 60_000_000 } });
  await visit(page, "definitions", "Definitions");
  const definitions = {
    queues: [
      { name: "compared", vhost: "/", durable: true, auto_delete: false, arguments: { "x-max-length": 6 } },
      { name: "compared-too", vhost: "/", durable: true, auto_delete: false, arguments: {} },
    ],
    policies: [{ name: "compared", vhost: "/", pattern: "^compared$", "apply-to": "queues", priority: 0, definition: { expires: 70_000_000 } }],
  };
  const choose = (content: object) => page.getByLabel("Choose a file…").setInputFiles({ name: "new.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(content)) });
  await choose(definitions);
  const difference = page.getByRole("region", { name: "What would change" });
  await expect(difference).toContainText("policy compared in /");
  await expect(difference).toContainText('{"expires":70000000}');
  await expect(difference).toContainText("1 made");
  await expect(difference).toContainText("queue compared-too in /");
  await expect(difference).toContainText("1 there with other settings, and stay as they are");
  expect(await barriers(page)).toEqual([]);
  await expect(queue("compared-too")).rejects.toThrow("404");
  await page.getByRole("button", { name: "Load", exact: true }).click();
  await expect(page.getByRole("dialog")).toBeHidden();
  expect((await queue("compared-too")).messages).toBe(0);
  const policy = { name: "stripped", vhost: "/", pattern: "^stripped$", "apply-to": "queues", priority: 0, definition: { "ha-mode": "all", "max-length": 5 } };
  const binding = { source: "amq.topic", vhost: "/", destination: "no-such-queue", destination_type: "queue", routing_key: "k", arguments: {} };
  await choose({ policies: [policy], bindings: [binding], queue: [] });
  await expect(difference).toContainText("1 left out");
  await expect(difference).toContainText("there is no queue 'no-such-queue', neither here nor in the file");
  await expect(difference).toContainText("1 loaded without keys that do nothing here");
  await expect(difference).toContainText("ha-mode is RabbitMQ's and does nothing here");
  await expect(difference).toContainText("Keys that are unknown, and not loaded: queue");
  expect(await barriers(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await choose({ queues: [{ name: "lost", vhost: "no-such-vhost" }] });
  await expect(difference).toContainText("there is no vhost 'no-such-vhost'");
});

test("the way of a message is followed through queues, deliveries and dead letters", async ({ page }) => {
  await api("PUT", "/api/vhosts/traced", { description: "stays", tags: "" });
  await api("PUT", "/api/permissions/traced/guest", { configure: ".*", write: ".*", read: ".*" });
  await api("PUT", "/api/queues/traced/work", { arguments: { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead" } });
  await api("PUT", "/api/queues/traced/dead", {});
  await visit(page, "trace?vhost=traced", "Trace");
  await page.getByRole("button", { name: "Begin…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Begin", exact: true }).click();
  await expect(page.getByText("Nothing was published or delivered so far")).toBeVisible();
  const got = (from: string, ackmode: string) => api("POST", `/api/queues/traced/${from}/get`, { count: 1, ackmode, encoding: "auto" });
  await api("POST", "/api/exchanges/traced//publish", { routing_key: "work", properties: { message_id: "order-7" }, payload: "x", payload_encoding: "string" });
  await api("POST", "/api/exchanges/traced//publish", { routing_key: "nowhere", properties: { message_id: "order-8" }, payload: "x", payload_encoding: "string" });
  await got("work", "reject_requeue_true");
  await got("work", "reject_requeue_false");
  await got("dead", "ack_requeue_false");
  await page.getByRole("button", { name: "Refresh" }).click();
  await expect(page.getByRole("row", { name: /order-8/ })).toContainText("went to no queue");
  await expect(page.getByRole("row", { name: /order-7/ })).toContainText("delivered 3 times");
  await page.getByRole("button", { name: "order-7", exact: true }).click();
  const steps = page.locator(".timeline > li");
  await expect(steps).toHaveCount(5);
  await expect(steps.nth(0)).toContainText("published by guest to (default exchange) with work: it went to work");
  await expect(steps.nth(1)).toContainText("delivered out of work");
  await expect(steps.nth(2)).toContainText("delivered again out of work");
  await expect(steps.nth(3)).toContainText("rejected in work");
  // It had come back before it died.
  await expect(steps.nth(4)).toContainText("delivered again out of dead");
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Switch off…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Switch off", exact: true }).click();
  await expect(page.getByRole("heading", { name: "Follow messages" })).toBeVisible();
  expect(await api("GET", "/api/vhosts/traced")).toMatchObject({ tracing: false, description: "stays" });
  const left = (await api("GET", "/api/queues/traced")) as { name: string }[];
  expect(left.map((one) => one.name).sort()).toEqual(["dead", "work"]);
});

test("all steps are taken at once, and those that never came are counted", async ({ page }) => {
  const vhost = "traced-much";
  await api("PUT", `/api/vhosts/${vhost}`, {});
  await api("PUT", `/api/permissions/${vhost}/guest`, { configure: ".*", write: ".*", read: ".*" });
  await api("PUT", `/api/queues/${vhost}/work`, {});
  await visit(page, `trace?vhost=${vhost}`, "Trace");
  // What is taken is taken by one press of the button.
  await page.getByLabel("Refresh interval").selectOption("0");
  await page.getByRole("button", { name: "Begin…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Begin", exact: true }).click();
  await expect(page.getByText("Nothing was published or delivered so far")).toBeVisible();
  const copies = async () => ((await api("GET", `/api/queues/${vhost}`)) as { name: string; messages: number }[]).find((one) => one.name !== "work")!;
  const publishes = async (ids: string[]) => {
    await publishAll("127.0.0.1", await amqpPort(), vhost, "work", ids);
    await expect.poll(async () => (await copies()).messages).toBe(ids.length);
  };
  await publishes(Array.from({ length: 1200 }, (_, nth) => `many-${nth}`));
  await page.getByRole("button", { name: "Refresh" }).click();
  await expect(page.getByRole("heading", { name: "Messages (1,200)" })).toBeVisible();
  await expect.poll(async () => (await copies()).messages).toBe(0);
  await expect(page.getByText("did not get here")).toHaveCount(0);

  await publishes(["late-1", "late-2", "late-3", "late-4", "late-5"]);
  await api("DELETE", `/api/queues/${vhost}/${(await copies()).name}/contents?count=3`);
  await page.getByRole("button", { name: "Refresh" }).click();
  await expect(page.getByRole("status").filter({ hasText: "3 steps did not get here" })).toBeVisible();
  await expect(page.getByRole("row", { name: /late-5/ })).toContainText("waits");
  // Whether these went on is not known any more.
  await page.getByRole("searchbox").fill("many-1199");
  await expect(page.getByRole("row", { name: /many-1199/ })).toContainText("not known");
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Clear" }).click();
  await expect(page.getByText("did not get here")).toHaveCount(0);
});

test("a message is followed whatever its publisher wrote as x-death", async ({ page }) => {
  await api("PUT", "/api/vhosts/traced-odd", {});
  await api("PUT", "/api/permissions/traced-odd/guest", { configure: ".*", write: ".*", read: ".*" });
  await api("PUT", "/api/queues/traced-odd/work", {});
  await visit(page, "trace?vhost=traced-odd", "Trace");
  await page.getByRole("button", { name: "Begin…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Begin", exact: true }).click();
  await expect(page.getByText("Nothing was published or delivered so far")).toBeVisible();
  const headers = { "x-death": ["text", 1, null, { queue: 1, reason: 2 }, { queue: "tomb", reason: "expired", count: 1, time: 1e300 }] };
  await api("POST", "/api/exchanges/traced-odd//publish", { routing_key: "work", properties: { message_id: "odd-1", headers }, payload: "x", payload_encoding: "string" });
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByRole("button", { name: "odd-1", exact: true }).click();
  await expect(page.locator(".timeline > li.died")).toContainText("expired in tomb");
  await expect(page.locator(".timeline > li")).toHaveCount(2);
});

test("only the first messages of a queue are purged", async ({ page }) => {
  await makeQueue("shortened");
  for (const nth of [1, 2, 3]) await publish("shortened", `number ${nth}`);
  await visit(page, "queues/%2F/shortened", "shortened");
  await page.getByRole("button", { name: "Purge…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Only the first").fill("2");
  await dialog.getByLabel("Type shortened to go on").fill("shortened");
  await dialog.getByRole("button", { name: "Purge", exact: true }).click();
  await expect(dialog).toBeHidden();
  const left = (await api("GET", "/api/queues/%2F/shortened/messages")) as { messages: { payload: string }[] };
  expect(left.messages.map((one) => one.payload)).toEqual(["number 3"]);
});

test("the picture of a vhost says how much goes through its queues", async ({ page }) => {
  await api("PUT", "/api/vhosts/drawn", {});
  await api("PUT", "/api/permissions/drawn/guest", { configure: ".*", write: ".*", read: ".*" });
  await api("PUT", "/api/queues/drawn/a.b+c", {});
  await api("POST", "/api/bindings/drawn/e/amq.topic/q/a.b%2Bc", { routing_key: "drawn.#" });
  await api("POST", "/api/exchanges/drawn/amq.topic/publish", { routing_key: "drawn.one", properties: {}, payload: "x", payload_encoding: "string" });
  await visit(page, "topology?vhost=drawn", "Topology");
  await expect(page.locator(".box.queue")).toContainText(/a\.b\+c1 · .*in, .*out/);
  await page.goto(`${address}/#/topology?vhost=drawn&name=fanout`);
  await expect(page.getByText("Nothing is bound here")).toBeVisible();
});

/** A vhost whose queue has dead letters and whose exchange has an alternate one, the first by a policy. */
async function makeDetours(vhost: string): Promise<void> {
  await api("PUT", `/api/vhosts/${vhost}`, {});
  await api("PUT", `/api/permissions/${vhost}/guest`, { configure: ".*", write: ".*", read: ".*" });
  await api("PUT", `/api/exchanges/${vhost}/orders`, { type: "topic", arguments: { "alternate-exchange": "lost" } });
  for (const name of ["lost", "dead", "other"]) await api("PUT", `/api/exchanges/${vhost}/${name}`, { type: "fanout" });
  await api("PUT", `/api/queues/${vhost}/work`, {});
  await api("PUT", `/api/queues/${vhost}/retry`, { arguments: { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work" } });
  for (const name of ["parked", "unrouted"]) await api("PUT", `/api/queues/${vhost}/${name}`, {});
  await api("PUT", `/api/policies/${vhost}/letters`, { pattern: "^work$", "apply-to": "queues", definition: { "dead-letter-exchange": "dead" } });
  await api("PUT", `/api/policies/${vhost}/alternate`, { pattern: "^other$", "apply-to": "exchanges", definition: { "alternate-exchange": "lost" } });
  const bind = (from: string, queue: string, key: string) => api("POST", `/api/bindings/${vhost}/e/${from}/q/${queue}`, { routing_key: key });
  await bind("orders", "work", "order.#");
  await bind("orders", "retry", "retry.#");
  await bind("dead", "parked", "");
  await bind("lost", "unrouted", "");
}

test("the picture shows where dead letters and unrouted messages go", async ({ page }) => {
  await makeDetours("detours");
  await visit(page, "topology?vhost=detours", "Topology");
  const legend = page.getByRole("list", { name: "Kinds of edges" });
  await expect(legend.getByRole("listitem")).toHaveText(["binding", "dead letters", "alternate exchange"]);
  // Of work by its policy, of retry by its arguments; of orders by its arguments, of other by its policy.
  await expect(page.locator(".edge.dead-letters")).toHaveCount(2);
  await expect(page.locator(".edge.alternate-exchange")).toHaveCount(2);
  await expect(page.locator(".edge.binding")).toHaveCount(4);
  await expect(page.locator(".box.queue")).toHaveCount(4);
  expect(await barriers(page)).toEqual([]);
});

test("a picture is made to fit its box", async ({ page }) => {
  await makeDetours("fitted");
  await page.setViewportSize({ width: 700, height: 700 });
  await visit(page, "topology?vhost=fitted", "Topology");
  const [svg, box] = [page.locator(".picture svg"), page.locator(".picture-box")];
  const spare = async () => (await box.evaluate((one) => one.clientWidth)) - (await svg.evaluate((one) => one.clientWidth));
  for (let step = 0; step < 4; step += 1) await page.getByRole("button", { name: "Larger" }).click();
  await expect.poll(spare).toBeLessThan(0);
  await page.getByRole("button", { name: "Fit", exact: true }).click();
  await expect.poll(spare).toBeGreaterThanOrEqual(0);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole("button", { name: "Fit", exact: true }).click();
  await expect.poll(spare).toBeGreaterThanOrEqual(0);
});

test("with all vhosts chosen, the topology asks for one", async ({ page }) => {
  await makeDetours("chosen");
  await visit(page, "topology", "Topology");
  await expect(page.getByRole("heading", { name: "Choose a vhost" })).toBeVisible();
  await expect(page.locator(".picture")).toHaveCount(0);
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("button", { name: "chosen", exact: true }).click();
  await expect(page.locator(".box.queue").first()).toBeVisible();
  await expect(page.getByRole("heading", { level: 1, name: "Topology" })).toBeVisible();
  expect(page.url()).toContain("vhost=chosen");
});
