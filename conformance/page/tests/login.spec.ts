// Getting in, staying in, and being let out.
import { address, api, barriers, expect, login, test, visit } from "../support";

test("a wrong password is said, and no form of the browser's comes up", async ({ page }) => {
  await page.goto(address + "/");
  await page.getByLabel("User").fill("guest");
  await page.getByLabel("Password").fill("wrong");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("alert")).toContainText("the password is another one");
  expect(await barriers(page)).toEqual([]);
});

test("a user without tags is told which ones it needs", async ({ page }) => {
  await api("PUT", "/api/users/untagged", { password: "untagged", tags: "" });
  await page.goto(address + "/");
  await page.getByLabel("User").fill("untagged");
  await page.getByLabel("Password").fill("untagged");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("alert")).toContainText("management, policymaker, monitoring, administrator");
});

test("a session outlives a reload, and ends with the logout", async ({ page }) => {
  await login(page);
  await visit(page, "queues", "Queues");
  await page.reload();
  await expect(page.getByRole("heading", { level: 1, name: "Queues" })).toBeVisible();
  await page.locator("summary", { hasText: "guest" }).click();
  await page.getByRole("button", { name: "Log out" }).click();
  await expect(page.getByRole("button", { name: "Log in" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("button", { name: "Log in" })).toBeVisible();
});

test("when the session ends elsewhere, the page says so and asks again", async ({ page }) => {
  await api("PUT", "/api/users/leaver", { password: "leaver", tags: "monitoring" });
  await login(page, "leaver");
  await api("PUT", "/api/users/leaver", { password: "another", tags: "monitoring" });
  await expect(page.getByText("The session has ended")).toBeVisible();
});

test("what a user may not see is said, and what it may not do is refused in words", async ({ page }) => {
  await api("PUT", "/api/users/looker", { password: "looker", tags: "management" });
  await api("PUT", "/api/permissions/%2F/looker", { configure: "^$", write: "^$", read: ".*" });
  await login(page, "looker");
  await expect(page.getByRole("link", { name: "Users" })).toBeHidden();
  await page.evaluate(() => (location.hash = "#/users"));
  await expect(page.getByRole("alert")).toContainText("Not allowed");
  await visit(page, "queues", "Queues");
  await page.getByRole("button", { name: "Add a queue" }).click();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("not-for-lookers");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("dialog").getByRole("alert")).toContainText("Not allowed");
});

test("a broker that is gone is said, and its return noticed", async ({ page }) => {
  await login(page);
  await page.route("**/api/**", (route) => route.abort());
  await expect(page.locator(".no-broker")).toContainText(/No answer since \d\d:\d\d:\d\d/);
  await page.unroute("**/api/**");
  await expect(page.locator(".no-broker")).toBeHidden({ timeout: 30_000 });
});
