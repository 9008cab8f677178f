// What a queue's messages do: looked at without a change, searched, moved, and who holds them.
import { hold } from "../crowd";
import { amqpPort, api, barriers, expect, login, makeQueue, publish, queue, test, visit } from "../support";

test.beforeEach(async ({ page }) => login(page));

test("messages are searched without a change to them, and moved after a trial", async ({ page }) => {
  await makeQueue("from");
  await makeQueue("into");
  for (const nth of [1, 2, 3]) await publish("from", JSON.stringify({ nth }), { headers: { half: nth % 2 } });
  await visit(page, "queues/%2F/from?tab=messages", "from");
  await expect(page.locator(".message-row")).toHaveCount(3);
  await page.getByLabel("Payload contains").fill('"nth":2');
  await page.getByLabel("Payload contains").press("Tab");
  await expect(page.locator(".message-row")).toHaveCount(1);
  await expect(page.locator(".message-row")).toContainText('{"nth":2}');
  expect(await barriers(page)).toEqual([]);
  await page.getByLabel("Select message 1").check();
  await page.getByRole("button", { name: "Move…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Queue", { exact: true }).fill("nowhere");
  await dialog.getByRole("button", { name: "Dry run" }).click();
  await expect(dialog.getByRole("alert")).toContainText("nowhere");
  await expect(dialog.getByRole("button", { name: "Move", exact: true })).toBeDisabled();
  await dialog.getByLabel("Queue", { exact: true }).fill("into");
  await dialog.getByRole("button", { name: "Dry run" }).click();
  await expect(dialog.getByRole("status")).toContainText("1 message would move");
  expect((await queue("into")).messages).toBe(0);
  await dialog.getByRole("button", { name: "Move", exact: true }).click();
  await expect(dialog).toBeHidden();
  expect([(await queue("from")).messages, (await queue("into")).messages]).toEqual([2, 1]);
  const got = (await api("POST", "/api/queues/%2F/from/get", { count: 1, ackmode: "ack_requeue_true", encoding: "auto" })) as { redelivered: boolean }[];
  expect(got[0]!.redelivered).toBe(false);
});

test("messages are lines of which many fit, and each opens to all of it", async ({ page }) => {
  await makeQueue("many");
  const payload = (nth: number) => JSON.stringify({ nth, text: "x".repeat(200) });
  for (let nth = 0; nth < 20; nth += 1) await publish("many", payload(nth), { message_id: `id-${nth}`, headers: { half: nth % 2 } });
  await visit(page, "queues/%2F/many?tab=messages", "many");
  const rows = page.locator(".message-row");
  await expect(rows).toHaveCount(20);
  const { height } = (await page.getByRole("region", { name: "Messages in the queue" }).boundingBox())!;
  expect(height).toBeLessThan(700);
  await expect(rows.nth(3)).toContainText("many");
  await expect(rows.nth(3).locator(".payload")).toHaveText(payload(3).slice(0, 80));
  await expect(page.locator(".message")).toHaveCount(0);

  // With the pointer, and with the keys: j goes to the first row.
  await rows.nth(3).locator(".payload").click();
  await expect(page.locator(".message")).toHaveCount(1);
  await expect(page.locator(".message")).toContainText('"nth": 3');
  await expect(page.locator(".message").getByText("header half")).toBeVisible();
  await page.locator(".message").getByRole("button", { name: "Raw" }).click();
  await expect(page.locator(".message pre")).toHaveText(payload(3));
  expect(await barriers(page)).toEqual([]);
  await rows.nth(3).locator(".payload").click();
  await expect(page.locator(".message")).toHaveCount(0);
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("button", { name: "Message 0", exact: true })).toHaveAttribute("aria-expanded", "true");
  await expect(page.locator(".message")).toContainText('"nth": 0');
  await page.getByRole("button", { name: "Expand all" }).click();
  await expect(page.locator(".message")).toHaveCount(20);
});

test("a timestamp of any unit and size is shown", async ({ page }) => {
  await makeQueue("timestamps");
  const sent = [1795548022, 1795548022626, 1795548022626958, 1795548022626958000, 9_000_000_000_000_000_000];
  for (const timestamp of sent) await publish("timestamps", "x", { timestamp });
  await visit(page, "queues/%2F/timestamps?tab=messages", "timestamps");
  await page.getByRole("button", { name: "Expand all" }).click();
  const cards = page.locator(".message");
  await expect(cards).toHaveCount(5);
  const meant = ["(2026-11-24 19:20:22 UTC)", "(2026-11-24 19:20:22 UTC, if in milliseconds)", "(2026-11-24 19:20:22 UTC, if in microseconds)", "(2026-11-24 19:20:22 UTC, if in nanoseconds)", "UTC, if in nanoseconds)"];
  for (const [nth, text] of meant.entries()) await expect(cards.nth(nth)).toContainText(text);
});

test("the columns of messages are chosen, and remembered", async ({ page }) => {
  await makeQueue("columned");
  await publish("columned", "x", { message_id: "id-7" });
  await visit(page, "queues/%2F/columned?tab=messages", "columned");
  const row = page.locator(".message-row");
  await expect(row).toHaveCount(1);
  await expect(row).not.toContainText("id-7");
  await page.locator("summary", { hasText: "Columns" }).click();
  await page.getByLabel("Message ID").check();
  await page.getByLabel("Exchange", { exact: true }).uncheck();
  await expect(row).toContainText("id-7");
  await expect(row).not.toContainText("(default)");
  expect(await barriers(page)).toEqual([]);
  await visit(page, "queues", "Queues");
  await visit(page, "queues/%2F/columned?tab=messages", "columned");
  await expect(row).toContainText("id-7");
});

test("a queue says why its messages wait, and who holds them", async ({ page }) => {
  await makeQueue("waiting");
  await publish("waiting", "x");
  await visit(page, "queues/%2F/waiting", "waiting");
  await expect(page.getByRole("region", { name: "Why messages wait" })).toContainText("without a consumer");
  await page.getByRole("button", { name: "Unacknowledged" }).click();
  await expect(page.getByText("No unacknowledged messages.")).toBeVisible();
  expect(await barriers(page)).toEqual([]);
});

test("who holds messages is shown, and has to give them back", async ({ page }) => {
  await makeQueue("held");
  await publish("held", "x");
  const leave = await hold("127.0.0.1", await amqpPort(), "held");
  try {
    await expect.poll(async () => ((await api("GET", "/api/queues/%2F/held")) as { messages_unacknowledged: number }).messages_unacknowledged).toBe(1);
    await visit(page, "queues/%2F/held?tab=unacked", "held");
    const row = page.getByRole("row", { name: /holder/ });
    await expect(row).toContainText("guest");
    expect(await barriers(page)).toEqual([]);
    await row.getByRole("button", { name: "Return…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Close the connection" }).click();
    await expect(page.getByText("No unacknowledged messages.")).toBeVisible();
    expect(await api("GET", "/api/queues/%2F/held")).toMatchObject({ messages_ready: 1, consumers: 0 });
  } finally {
    leave();
  }
});

test("a channel alone is closed, and what it held waits again", async ({ page }) => {
  await makeQueue("held-by-channel");
  await publish("held-by-channel", "x");
  const leave = await hold("127.0.0.1", await amqpPort(), "held-by-channel");
  const queue = () => api("GET", "/api/queues/%2F/held-by-channel") as Promise<{ messages_unacknowledged: number; messages_ready: number; consumers: number; consumer_details: { channel_details: { name: string; connection_name: string } }[] }>;
  try {
    await expect.poll(async () => (await queue()).messages_unacknowledged).toBe(1);
    const { name, connection_name: connection } = (await queue()).consumer_details[0]!.channel_details;
    await visit(page, "queues/%2F/held-by-channel?tab=consumers", "held-by-channel");
    await page.getByRole("link", { name }).click();
    await page.getByRole("button", { name: "Close…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Reason").fill("too much");
    expect(await barriers(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Close", exact: true }).last().click();
    await expect(dialog).toBeHidden();
    await expect.poll(queue).toMatchObject({ messages_ready: 1, messages_unacknowledged: 0, consumers: 0 });
    await expect(page.getByText("No open channels.")).toBeVisible();
    expect(await api("GET", `/api/connections/${encodeURIComponent(connection)}`)).toMatchObject({ state: "running" });
  } finally {
    leave();
  }
});

test("how far behind a reader of a stream is, and that its prefetch is used up, is shown", async ({ page }) => {
  await makeQueue("lagging", { "x-queue-type": "stream" });
  const leave = await hold("127.0.0.1", await amqpPort(), "lagging", 2);
  try {
    const reader = async () => ((await api("GET", "/api/queues/%2F/lagging")) as { consumer_details?: { offset_lag: number }[] }).consumer_details?.[0];
    await expect.poll(reader).toMatchObject({ offset: 0, offset_lag: 0 });
    for (const nth of [1, 2, 3, 4, 5]) await publish("lagging", `number ${nth}`);
    await expect.poll(reader).toMatchObject({ offset: 2, offset_lag: 3 });
    await visit(page, "queues/%2F/lagging", "lagging");
    await expect(page.locator(".tile", { hasText: "largest lag" })).toContainText("3");
    await page.getByRole("button", { name: "Consumers" }).click();
    const row = page.getByRole("row", { name: /holder/ });
    await expect(row.locator("[data-label=Behind]")).toHaveText("3");
    await expect(row.locator("[data-label=Behind] [title]").first()).toHaveAttribute("title", /offset 2 next/);
    await expect(row.locator("[data-label=Unacked]")).toHaveText("2");
    await expect(row).toContainText("prefetch full");
    expect(await barriers(page)).toEqual([]);
  } finally {
    leave();
  }
});

test("an exchange says where a message would go", async ({ page }) => {
  await makeQueue("traced");
  await api("POST", "/api/bindings/%2F/e/amq.direct/q/traced", { routing_key: "there" });
  await visit(page, "exchanges/%2F/amq.direct?tab=route", "amq.direct");
  await page.getByLabel("Routing key").fill("there");
  await page.getByRole("button", { name: "Where would it go?" }).click();
  await expect(page.getByRole("status").filter({ hasText: "It reaches 1 queue" })).toContainText("traced");
  await page.getByLabel("Routing key").fill("elsewhere");
  await page.getByRole("button", { name: "Where would it go?" }).click();
  await expect(page.getByText("It reaches no queue.")).toBeVisible();
  expect((await queue("traced")).messages).toBe(0);
  expect(await barriers(page)).toEqual([]);
});

test("whether a user may do something is asked for", async ({ page }) => {
  await api("PUT", "/api/users/asked", { password: "asked", tags: "" });
  await api("PUT", "/api/permissions/%2F/asked", { configure: "", write: "^mine", read: "" });
  await visit(page, "users/asked", "asked");
  await page.getByLabel("Resource name").fill("mine.1");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await expect(page.getByText("is granted to user 'asked'")).toBeVisible();
  await page.getByLabel("Resource name").fill("yours");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await expect(page.getByText(/refused for user 'asked'/)).toBeVisible();
  expect(await barriers(page)).toEqual([]);
});
