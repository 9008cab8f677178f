// Lists: the broker finds, sorts and cuts; the address says what is seen; keys suffice.
import { api, barriers, expect, login, makeQueue, publish, test, visit } from "../support";

test.beforeAll(async () => {
  for (let nth = 0; nth < 60; nth += 1) await makeQueue(`list.${String(nth).padStart(3, "0")}`);
  for (let nth = 0; nth < 3; nth += 1) await publish("list.007", "x");
});

test("a list is searched, sorted and paged by the broker, and a view can be sent", async ({ page }) => {
  await login(page);
  await visit(page, "queues?name=list.&size=25", "Queues");
  await expect(page.getByRole("navigation", { name: "Pages" }).last()).toContainText("1–25 of 60");
  await page.getByRole("button", { name: "Next ›" }).click();
  await expect(page.getByRole("link", { name: "list.025" })).toBeVisible();
  const asked = page.waitForRequest((request) => request.url().includes("sort=messages_ready"));
  await page.getByRole("button", { name: "Waiting" }).click();
  expect((await asked).url()).toContain("sort_reverse=true");
  await expect(page.locator("tbody tr").first()).toContainText("list.007");
  await page.getByRole("button", { name: "Regular expression" }).click();
  await page.getByRole("searchbox").fill("^list\\.0[12]\\d$");
  await expect(page.getByRole("navigation", { name: "Pages" }).last()).toContainText("1–20 of 20");
  const address = page.url();
  await page.getByText("Views", { exact: true }).click();
  await page.getByRole("button", { name: "Keep this view…" }).click();
  await page.getByLabel("Its name").fill("twenties");
  await page.getByRole("button", { name: "Keep", exact: true }).click();
  await page.goto("about:blank");
  await page.goto(address);
  await expect(page.getByRole("navigation", { name: "Pages" }).last()).toContainText("1–20 of 20");
  await visit(page, "queues", "Queues");
  await page.getByText("Views", { exact: true }).click();
  await page.getByRole("link", { name: "twenties" }).click();
  await expect(page.getByRole("navigation", { name: "Pages" }).last()).toContainText("1–20 of 20");
});

test("a list that comes whole is searched and sorted before it is cut", async ({ page }) => {
  for (const nth of [1, 2, 3]) await api("PUT", `/api/policies/%2F/whole-${nth}`, { pattern: "^none$", "apply-to": "queues", priority: nth, definition: { expires: 60_000_000 } });
  await login(page);
  await visit(page, "policies?name=whole-", "Policies");
  const rows = page.locator("main tbody tr");
  await expect(rows).toHaveCount(3);
  await page.getByRole("button", { name: "Priority" }).click();
  await expect(rows.first()).toContainText("whole-3");
  await page.getByRole("searchbox").fill("WHOLE-2");
  await expect(rows).toHaveCount(1);
  await expect(rows).toContainText("whole-2");
  await page.getByRole("button", { name: "Regular expression" }).click();
  await page.getByRole("searchbox").fill("^whole-[13]$");
  await expect(rows).toHaveCount(2);
});

test("no list is asked for whole", async ({ page }) => {
  await login(page);
  const whole: string[] = [];
  page.on("request", (request) => {
    const url = new URL(request.url());
    const isList = /^\/api\/(queues|exchanges|connections|channels|vhosts|users)$/.test(url.pathname);
    if (isList && request.method() === "GET" && !url.searchParams.has("page")) whole.push(request.url());
  });
  for (const [path, heading] of [["queues", "Queues"], ["exchanges", "Exchanges"], ["connections", "Connections"], ["channels", "Channels"], ["vhosts", "Vhosts"], ["users", "Users"], ["overview", "Overview"]]) {
    await visit(page, path!, heading!);
    await expect(page.locator(".loading")).toHaveCount(0);
  }
  expect(whole).toEqual([]);
});

test("everything can be reached by keys", async ({ page }) => {
  await login(page);
  await page.keyboard.press("g");
  await page.keyboard.press("q");
  await expect(page.getByRole("heading", { level: 1, name: "Queues" })).toBeVisible();
  await page.keyboard.press("/");
  await page.keyboard.type("list.00");
  await expect(page.getByRole("navigation", { name: "Pages" }).last()).toContainText("of 10");
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await expect(page.getByRole("link", { name: "list.001" })).toBeFocused();
  await page.keyboard.press("x");
  await expect(page.getByText("1 row selected")).toBeVisible();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "list.001" })).toBeVisible();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /Search pages/ }).fill("list.042");
  await expect(page.getByRole("option", { name: /list.042/ })).toBeVisible();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "list.042" })).toBeVisible();
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog")).toContainText("Search in the list");
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("v");
  await page.keyboard.press("n");
  await page.keyboard.type("by-keys");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "by-keys" })).toBeVisible();
});

test("the list of streams has streams alone, and counts them", async ({ page }) => {
  await makeQueue("alone.log", { "x-queue-type": "stream" });
  await makeQueue("alone.queue");
  await login(page);
  await visit(page, "streams?name=alone", "Streams");
  await expect(page.getByRole("link", { name: "alone.log" })).toBeVisible();
  await expect(page.locator("tbody tr")).toHaveCount(1);
  await expect(page.getByRole("navigation", { name: "Pages of the list" }).locator("span").first()).toHaveText("1–1 of 1");
  expect(await barriers(page)).toEqual([]);
  await visit(page, "streams?name=alone&sort=messages&desc=1", "Streams");
  await expect(page.locator("tbody tr")).toHaveCount(1);
  await visit(page, "streams?name=no-such-stream", "Streams");
  await expect(page.getByText("Nothing matches")).toBeVisible();
});

test("what is typed into a search stays with its list", async ({ page }) => {
  await login(page);
  await visit(page, "queues", "Queues");
  await page.evaluate(() => {
    const search = document.querySelector<HTMLInputElement>("[data-key=search]")!;
    search.value = "meant for queues";
    search.dispatchEvent(new InputEvent("input", { bubbles: true }));
    for (const key of ["g", "e"]) document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  });
  await expect(page.getByRole("heading", { level: 1, name: "Exchanges" })).toBeVisible();
  await expect(page.getByRole("link", { name: "amq.topic" }).first()).toBeVisible();
  // Longer than a search waits for the next letter.
  await page.evaluate(() => new Promise((done) => setTimeout(done, 600)));
  expect(page.url()).not.toContain("meant");
  await expect(page.getByRole("searchbox")).toHaveValue("");
});

test("Enter that comes before the broker's answer opens what the broker finds", async ({ page }) => {
  await login(page);
  await page.keyboard.press("Control+k");
  await page.route("**/api/queues?**", async (route) => {
    await new Promise((done) => setTimeout(done, 500));
    await route.continue();
  });
  await page.keyboard.type("list.051");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "list.051" })).toBeVisible();
  await expect(page.getByRole("dialog")).toBeHidden();
});

test("what the palette adds takes the keys that follow at once", async ({ page }) => {
  await login(page);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("add a vhost");
  await page.keyboard.press("Enter");
  await page.keyboard.type("typed-at-once");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "typed-at-once" })).toBeVisible();
});

test("a dialog that is closed and opened again at once is open", async ({ page }) => {
  await login(page);
  await visit(page, "queues", "Queues");
  await page.evaluate(() => {
    const press = (key: string) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    press("n");
    document.querySelector<HTMLElement>("dialog[open] .x")!.click();
    press("n");
  });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50))));
  await expect(page.getByRole("dialog")).toContainText("Add a queue");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toBeHidden();
});

test("keys that come at once reach the page that the first of them opened", async ({ page }) => {
  await login(page);
  await page.evaluate(() => {
    for (const key of ["g", "v", "n"]) document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  });
  await expect(page.getByRole("dialog")).toContainText("Add a vhost");
});
