// What goes on while the page is shown: streams, the log, queues that are paused, certificates.
import { hold } from "../crowd";
import { amqpPort, api, barriers, expect, login, makeQueue, publish, queue, test, visit } from "../support";

test.beforeEach(async ({ page }) => login(page));

const STREAM = { "x-queue-type": "stream" };

test("a stream is read from an offset, from a time and from its end", async ({ page }) => {
  await api("DELETE", "/api/queues/%2F/read.log").catch(() => undefined);
  await makeQueue("read.log", STREAM);
  for (let nth = 0; nth < 50; nth += 1) await publish("read.log", JSON.stringify({ nth }), { headers: { half: nth % 2 } });
  await visit(page, "streams/%2F/read.log?tab=messages", "read.log");
  const messages = page.locator(".message-row");
  await expect(page.getByText("the offsets 0 to 49")).toBeVisible();
  await expect(messages).toHaveCount(20);
  await expect(messages.first()).toContainText('{"nth":0');
  await expect(page.getByRole("button", { name: "‹ Earlier" })).toBeDisabled();
  await page.getByRole("button", { name: "Later ›" }).click();
  await expect(messages.first()).toContainText('{"nth":20');
  expect(page.url()).toContain("offset=20");
  await page.getByRole("button", { name: "‹ Earlier" }).click();
  await expect(messages.first()).toContainText('{"nth":0');
  await page.getByLabel("Begin with").selectOption("an offset");
  await page.getByLabel("Offset", { exact: true }).fill("45");
  await page.getByLabel("Offset", { exact: true }).press("Tab");
  await expect(messages).toHaveCount(5);
  await expect(messages.last()).toContainText('{"nth":49');
  await page.getByLabel("Begin with").selectOption("the last messages");
  await expect(messages).toHaveCount(20);
  await expect(messages.first()).toContainText('{"nth":30');
  await page.getByLabel("Begin with").selectOption("a time");
  await expect(messages.first()).toContainText('{"nth":0');
  await page.getByLabel("Payload contains").fill('"nth":33');
  await page.getByLabel("Payload contains").press("Tab");
  await expect(messages).toHaveCount(1);
  await expect(messages).toContainText('{"nth":33');
  expect(await barriers(page)).toEqual([]);
  expect((await queue("read.log")).messages).toBe(50);
});

test("a stream's messages appear as they come", async ({ page }) => {
  await makeQueue("tail.log", STREAM);
  await publish("tail.log", "before");
  await visit(page, "streams/%2F/tail.log?tab=messages&live=1", "tail.log");
  await expect(page.getByText("live", { exact: true })).toBeVisible();
  await publish("tail.log", "after 1");
  await expect(page.locator(".message-row")).toHaveCount(1);
  await expect(page.locator(".message-row")).toContainText("after 1");
  await page.getByRole("button", { name: "Hold" }).click();
  await publish("tail.log", "after 2");
  await page.getByRole("button", { name: "Continue" }).click();
  await expect(page.locator(".message-row").first()).toContainText("after 2");
  expect(await barriers(page)).toEqual([]);
});

test("a queue is paused, says so, and goes on", async ({ page }) => {
  await makeQueue("halted");
  const leave = await hold("127.0.0.1", await amqpPort(), "halted");
  try {
    await visit(page, "queues/%2F/halted", "halted");
    await page.getByRole("button", { name: "Pause…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("As a command").click();
    await expect(dialog.locator("pre").first()).toContainText("courser ctl pause_queue -p / halted");
    await dialog.getByRole("button", { name: "Pause", exact: true }).click();
    await expect(dialog).toBeHidden();
    await expect(page.locator(".page-head .state")).toContainText("paused");
    await publish("halted", "x");
    await expect(page.getByRole("region", { name: "Why messages wait" })).toContainText("paused");
    expect(await api("GET", "/api/queues/%2F/halted")).toMatchObject({ messages_ready: 1, messages_unacknowledged: 0 });
    await page.getByRole("button", { name: "Resume…" }).click();
    await dialog.getByRole("button", { name: "Resume", exact: true }).click();
    await expect(page.locator(".page-head .state")).toContainText("running");
    await expect.poll(async () => ((await api("GET", "/api/queues/%2F/halted")) as { messages_unacknowledged: number }).messages_unacknowledged).toBe(1);
  } finally {
    leave();
  }
});

test("marked queues are paused and resumed together", async ({ page }) => {
  for (const nth of [1, 2]) await makeQueue(`together-${nth}`);
  const states = async () => ((await api("GET", "/api/queues?page=1&name=together-&columns=state")) as { items: { state: string }[] }).items.map((one) => one.state);
  const dialog = page.getByRole("dialog");
  for (const what of ["pause", "resume"]) {
    await visit(page, "queues?name=together-", "Queues");
    await expect(page.getByRole("link", { name: "together-2" })).toBeVisible();
    await page.getByLabel("Select all on this page").check();
    await page.getByRole("button", { name: "Pause…" }).click();
    await dialog.getByLabel("What to do").selectOption(what);
    await dialog.getByRole("button", { name: what === "pause" ? "Pause" : "Resume", exact: true }).click();
    await expect(dialog).toBeHidden();
    expect(await states()).toEqual(what === "pause" ? ["paused", "paused"] : ["running", "running"]);
    await visit(page, "limits", "Limits");
  }
});

test("the log is shown as it is written, and its levels are chosen", async ({ page }) => {
  await visit(page, "log", "Log");
  await expect(page.getByText("live", { exact: true })).toBeVisible();
  await expect(page.getByRole("row", { name: /info/ }).first()).toBeVisible();
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("searchbox").fill("no line of the log has this");
  await expect(page.getByText("Nothing matches")).toBeVisible();
  await page.getByRole("searchbox").fill("");
  await page.getByLabel("Levels").selectOption("errors");
  await expect(page.getByText("live", { exact: true })).toBeVisible();
  await expect(page.getByRole("row", { name: /info/ })).toHaveCount(0);
});

test("the node says which certificates it shows, and when they end", async ({ page }) => {
  const day = 86_400_000;
  const certificate = (subject: string, days: number) => ({
    path: `/etc/courser/${subject}.pem`, use: "server", hosts: [], subject: `CN=${subject}`, alternative_names: [subject], issuer: "CN=an authority", serial: "01",
    not_before_ms: Date.now() - day, not_after_ms: Date.now() + days * day, expires_in_s: (days * day) / 1000, listeners: [],
  });
  await visit(page, "node", "Node");
  await expect(page.getByText("There are none: nothing is served over TLS.")).toBeVisible();
  // This broker has no certificates: what it says of them is tested where it has.
  await page.route("**/api/certificates", (route) => route.fulfill({ json: [certificate("long.example", 300), certificate("soon.example", 5), certificate("past.example", -1)] }));
  await visit(page, "overview", "Overview");
  await visit(page, "node", "Node");
  await expect(page.getByRole("row", { name: /long\.example/ }).locator(".badge")).toHaveClass(/good/);
  await expect(page.getByRole("row", { name: /soon\.example/ }).locator(".badge")).toHaveClass(/warn/);
  await expect(page.getByRole("row", { name: /past\.example/ })).toContainText("expired");
  expect(await barriers(page)).toEqual([]);
});
