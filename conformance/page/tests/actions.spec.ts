// Every action, done as a person does it, and looked at past the page.
import type { Page } from "@playwright/test";
import { api, barriers, expect, login, makeQueue, publish, queue, test, visit } from "../support";

const done = (page: Page) => expect(page.getByRole("dialog")).toBeHidden();
const missing = (path: string) => expect(api("GET", path)).rejects.toThrow("404");

test.beforeEach(async ({ page }) => login(page));

test("a queue is added with typed arguments, and deleted", async ({ page }) => {
  await visit(page, "queues", "Queues");
  await page.getByRole("button", { name: "Add a queue" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Name", exact: true }).fill("added by hand/1");
  await dialog.getByRole("button", { name: "+ Add" }).click();
  await dialog.getByPlaceholder("name").fill("x-max-length");
  await dialog.getByPlaceholder("value").fill("77");
  await dialog.getByText("As a command").click();
  await expect(dialog.locator("pre")).toContainText("curl -u 'guest' -X PUT");
  await expect(dialog.locator("pre")).toContainText("added%20by%20hand%2F1");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "added by hand/1" })).toBeVisible();
  expect((await queue("added by hand/1")).arguments["x-max-length"]).toBe(77);
  await page.getByRole("button", { name: "Delete…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Queues" })).toBeVisible();
  await missing("/api/queues/%2F/added%20by%20hand%2F1");
});

test("only what destroys messages wants its name typed", async ({ page }) => {
  await makeQueue("full");
  await publish("full", "one");
  await visit(page, "queues/%2F/full", "full");
  await page.getByRole("button", { name: "Purge…" }).click();
  const dialog = page.getByRole("dialog");
  const purge = dialog.getByRole("button", { name: "Purge", exact: true });
  await expect(purge).toBeDisabled();
  await dialog.getByLabel("Type full to go on").fill("ful");
  await expect(purge).toBeDisabled();
  await dialog.getByLabel("Type full to go on").fill("full");
  await purge.click();
  await done(page);
  expect((await queue("full")).messages).toBe(0);
  await page.getByRole("button", { name: "Delete…" }).click();
  await expect(dialog.getByLabel("Type full to go on")).toHaveCount(0);
  await dialog.getByRole("button", { name: "Delete" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Queues" })).toBeVisible();
});

test("messages are published with typed headers, looked at and taken", async ({ page }) => {
  await makeQueue("desk");
  await visit(page, "queues/%2F/desk?tab=publish", "desk");
  await page.getByLabel("Payload", { exact: true }).fill('{"order": 7}');
  const headers = page.getByRole("group", { name: "Headers" });
  await headers.getByRole("button", { name: "+ Add" }).click();
  await headers.getByPlaceholder("name").nth(0).fill("attempt");
  await headers.getByLabel("Type").nth(0).selectOption("number");
  await headers.getByPlaceholder("value").nth(0).fill("3");
  await headers.getByRole("button", { name: "+ Add" }).click();
  await headers.getByPlaceholder("name").nth(1).fill("urgent");
  await headers.getByLabel("Type").nth(1).selectOption("yes/no");
  await headers.getByLabel("Value").nth(1).selectOption("yes");
  await page.getByLabel("Times").fill("2");
  await page.getByRole("button", { name: "Publish", exact: true }).last().click();
  await expect(page.getByText("2 messages published and routed.")).toBeVisible();
  await page.getByLabel("Payload", { exact: true }).fill("");
  await page.locator(".kept button", { hasText: '{"order": 7}' }).click();
  await expect(page.getByLabel("Payload", { exact: true })).toHaveValue('{"order": 7}');

  await page.getByRole("button", { name: "Messages", exact: true }).click();
  await page.locator(".message-row").first().click();
  const first = page.locator(".message");
  await expect(first).toContainText('"order": 7');
  await expect(first.getByText("header attempt")).toBeVisible();
  expect((await queue("desk")).messages).toBe(2);
  const got = (await api("POST", "/api/queues/%2F/desk/get", { count: 1, ackmode: "ack_requeue_true", encoding: "auto" })) as { properties: { headers: unknown; delivery_mode: number } }[];
  expect(got[0]!.properties.headers).toEqual({ attempt: 3, urgent: true });
  expect(got[0]!.properties.delivery_mode).toBe(2);

  await page.getByRole("button", { name: "Get…" }).click();
  await page.getByLabel("Count").fill("2");
  await page.getByRole("dialog").getByRole("button", { name: "Get", exact: true }).click();
  await expect(page.getByText("2 messages received")).toBeVisible();
  await expect.poll(async () => (await queue("desk")).messages).toBe(0);
});

test("an exchange is added, bound, published to and deleted", async ({ page }) => {
  await makeQueue("letters");
  await visit(page, "exchanges", "Exchanges");
  await page.getByRole("button", { name: "Add an exchange" }).click();
  await page.getByRole("dialog").getByRole("textbox", { name: "Name", exact: true }).fill("post");
  await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "post" })).toBeVisible();
  await page.getByRole("button", { name: "Bindings" }).click();
  await page.getByRole("button", { name: "Add a binding" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("To", { exact: true }).fill("letters");
  await dialog.getByLabel("Routing key").fill("letter.*");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("link", { name: "letters" })).toBeVisible();
  await page.getByRole("button", { name: "Topology" }).click();
  await expect(page.locator("svg").getByText("letter.*")).toBeVisible();
  await page.getByRole("button", { name: "Publish", exact: true }).click();
  await page.getByLabel("Routing key").fill("parcel.small");
  await page.getByRole("button", { name: "Publish", exact: true }).last().click();
  await expect(page.getByText("went to no queue")).toBeVisible();
  await page.getByLabel("Routing key").fill("letter.small");
  await page.getByRole("button", { name: "Publish", exact: true }).last().click();
  await expect(page.getByText("published and routed")).toBeVisible();
  expect((await queue("letters")).messages).toBe(1);
  await page.getByRole("button", { name: "Bindings" }).click();
  await page.getByRole("button", { name: "Remove…" }).click();
  await dialog.getByRole("button", { name: "Remove", exact: true }).click();
  await expect(page.getByRole("link", { name: "letters" })).toHaveCount(0);
  await page.getByRole("button", { name: "Delete…" }).click();
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Exchanges" })).toBeVisible();
  await missing("/api/exchanges/%2F/post");
});

test("marked queues are deleted together, and those with messages stay unless that is wanted", async ({ page }) => {
  for (const nth of [1, 2, 3]) await makeQueue(`bulk-${nth}`);
  await publish("bulk-3", "kept");
  await visit(page, "queues?name=bulk-", "Queues");
  await expect(page.getByRole("link", { name: "bulk-3" })).toBeVisible();
  await page.getByLabel("Select all on this page").check();
  await page.getByRole("button", { name: "Delete…" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.locator(".preview li")).toHaveCount(2);
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await done(page);
  await expect(page.getByRole("link", { name: "bulk-1" })).toHaveCount(0);
  expect((await queue("bulk-3")).messages).toBe(1);
});

test("a policy is added with a preview, changed and deleted", async ({ page }) => {
  await makeQueue("policed-1");
  await visit(page, "policies", "Policies");
  await page.getByRole("button", { name: "Add a policy" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Name", exact: true }).fill("short");
  await dialog.getByLabel("Pattern").fill("^policed-");
  await dialog.getByPlaceholder("value").fill("12");
  await expect(dialog.locator(".preview")).toContainText("policed-1");
  await expect(dialog.locator(".preview")).toContainText("max-length: none → 12");
  await dialog.getByText("As a command").click();
  await expect(dialog.locator("pre").first()).toContainText("courser ctl set_policy -p / ");
  await expect(dialog.locator("pre").first()).toContainText("short '^policed-' '{\"max-length\":12}'");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await done(page);
  const effective = async () => ((await api("GET", "/api/queues/%2F/policed-1")) as { effective_policy_definition: object }).effective_policy_definition;
  await expect.poll(effective).toEqual({ "max-length": 12 });
  await visit(page, "queues/%2F/policed-1", "policed-1");
  await expect(page.getByRole("row", { name: /max-length 12/ })).toContainText("policy");
  await visit(page, "policies", "Policies");
  await page.getByRole("button", { name: "short", exact: true }).click();
  await dialog.getByPlaceholder("value").fill("13");
  await dialog.getByRole("button", { name: "Change", exact: true }).click();
  await done(page);
  await expect.poll(effective).toEqual({ "max-length": 13 });
  await page.getByRole("row", { name: /short/ }).getByRole("button", { name: "Delete…" }).click();
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await done(page);
  await missing("/api/policies/%2F/short");
});

test("vhosts, users, permissions and limits are made and taken away", async ({ page }) => {
  await visit(page, "vhosts", "Vhosts");
  await page.getByRole("button", { name: "Add a vhost" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Name", exact: true }).fill("yard");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "yard" })).toBeVisible();

  await visit(page, "users", "Users");
  await page.getByRole("button", { name: "Add a user" }).click();
  await dialog.getByRole("textbox", { name: "Name", exact: true }).fill("gardener");
  await dialog.getByLabel("Password", { exact: true }).fill("s3cret'quote");
  await dialog.getByLabel(/monitoring/).check();
  await dialog.getByText("As a command").click();
  await expect(dialog.locator("pre").last()).not.toContainText("s3cret");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "gardener" })).toBeVisible();
  expect(await api("GET", "/api/whoami", undefined, "gardener:s3cret'quote")).toMatchObject({ tags: ["monitoring"] });

  await page.getByRole("button", { name: "Set permissions" }).click();
  await dialog.getByLabel("Vhost").selectOption("yard");
  await dialog.getByRole("button", { name: "consume only" }).click();
  await dialog.getByRole("button", { name: "Set", exact: true }).click();
  await done(page);
  expect(await api("GET", "/api/permissions/yard/gardener")).toMatchObject({ configure: "", write: "", read: ".*" });
  await page.getByRole("row", { name: /yard/ }).getByRole("button", { name: "Clear…" }).click();
  await dialog.getByRole("button", { name: "Clear", exact: true }).click();
  await done(page);
  await missing("/api/permissions/yard/gardener");

  await visit(page, "limits", "Limits");
  await page.getByRole("button", { name: "Set a limit" }).last().click();
  await dialog.getByLabel("User", { exact: true }).fill("gardener");
  await dialog.getByLabel("Value").fill("4");
  await dialog.getByRole("button", { name: "Set", exact: true }).click();
  await done(page);
  expect(await api("GET", "/api/user-limits/gardener")).toMatchObject([{ value: { "max-connections": 4 } }]);

  await visit(page, "users/gardener", "gardener");
  await page.getByRole("button", { name: "Delete…" }).click();
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Users" })).toBeVisible();
  await visit(page, "vhosts/yard", "yard");
  await page.getByRole("button", { name: "Protect…" }).click();
  await dialog.getByRole("button", { name: "Protect", exact: true }).click();
  await expect(page.getByRole("button", { name: "Delete…" })).toBeDisabled();
  await page.getByRole("button", { name: "Allow deletion…" }).click();
  await dialog.getByRole("button", { name: "Allow", exact: true }).click();
  await page.getByRole("button", { name: "Delete…" }).click();
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Vhosts" })).toBeVisible();
  await missing("/api/vhosts/yard");
});

test("definitions are saved, and loaded after a look at what is in them", async ({ page }) => {
  await makeQueue("exported");
  await visit(page, "definitions", "Definitions");
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save definitions" }).click();
  const file = await (await saving).path();
  await page.getByLabel("Choose a file…").setInputFiles({ name: "new.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify({ queues: [{ name: "imported", vhost: "/", durable: true, auto_delete: false, arguments: {} }] })) });
  await expect(page.getByRole("dialog")).toContainText("queues 1");
  await page.getByRole("button", { name: "Load", exact: true }).click();
  await done(page);
  expect((await queue("imported")).type).toBe("classic");
  expect((await import("node:fs")).readFileSync(file, "utf8")).toContain('"exported"');
  await page.getByLabel("Choose a file…").setInputFiles({ name: "bad.json", mimeType: "application/json", buffer: Buffer.from("{") });
  await expect(page.getByRole("alert")).toContainText("bad.json has no definitions");
});

test("a form is red for what was typed, not for what is missing yet", async ({ page }) => {
  await visit(page, "policies", "Policies");
  await page.getByRole("button", { name: "Add a policy" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByPlaceholder("name")).toHaveValue("max-length");
  await expect(dialog.locator(".wrong")).toHaveCount(0);
  await dialog.getByRole("textbox", { name: "Name", exact: true }).first().fill("typed");
  await expect(dialog.getByRole("button", { name: "Add", exact: true })).toBeDisabled();
  await dialog.getByLabel("Value").fill("many");
  await expect(dialog.locator(".wrong")).toHaveText("max-length: “many” is not a number");
  expect(await barriers(page)).toEqual([]);
  await page.keyboard.press("Escape");

  await makeQueue("unpublished");
  await visit(page, "queues/%2F/unpublished?tab=publish", "unpublished");
  const properties = page.getByRole("group", { name: "Properties" });
  await properties.getByRole("button", { name: "+ Add" }).click();
  await properties.getByPlaceholder("name").fill("priority");
  await expect(page.locator(".wrong")).toHaveCount(0);
  await expect(page.getByRole("button", { name: "Publish", exact: true }).last()).toBeDisabled();
  await properties.getByLabel("Value").fill("high");
  await expect(page.locator(".wrong")).toHaveText("priority: “high” is not a number");
});
