// Logging in at a provider that issues tokens: by the code flow with PKCE, at a provider of the test's own.
import type { Page } from "@playwright/test";
import { OwnBroker } from "../own-broker";
import { CLIENT, Provider, SECRET } from "../provider";
import { barriers, expect, test as base, visit } from "../support";

interface World {
  provider: Provider;
  /** Lets in by name and password too. */
  broker: OwnBroker;
  /** Lets in by token only. */
  strict: OwnBroker;
}

const settings = (provider: Provider) => ({
  OAUTH_RESOURCE_SERVER_ID: "mq",
  OAUTH_ISSUER: provider.address,
  OAUTH_CA: provider.authority,
  OAUTH_CLIENT_ID: CLIENT,
  OAUTH_CLIENT_SECRET: SECRET,
  OAUTH_PROVIDER_NAME: "Example",
  OAUTH_USERNAME_CLAIMS: "preferred_username",
  OAUTH_LEEWAY_SECONDS: "0",
  OAUTH_KEYS_RETRY_SECONDS: "1",
});

const test = base.extend<{ usual: void }, { world: World }>({
  world: [
    async ({}, use) => {
      const provider = await Provider.start();
      const broker = await OwnBroker.start(settings(provider));
      const strict = await OwnBroker.start({ ...settings(provider), OAUTH_DISABLE_BASIC_AUTH: "true" });
      for (const one of [broker, strict]) provider.pages.add(`${one.address}/`);
      await use({ provider, broker, strict });
      await Promise.all([broker.stop(), strict.stop()]);
      provider.stop();
    },
    { scope: "worker" },
  ],
  usual: [async ({ world }, use) => (world.provider.reset(), await use()), { auto: true }],
});
test.use({ ignoreHTTPSErrors: true });

const toProvider = (page: Page) => page.getByRole("button", { name: "Log in with Example" });
const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name });

async function logIn(page: Page, broker: OwnBroker, hash = ""): Promise<void> {
  await page.goto(`${broker.address}/${hash}`);
  await toProvider(page).click();
}

test("who logs in at the provider is back where it was, and no script and no log has a secret", async ({ page, world }) => {
  world.provider.ways.knowsConsent = false;
  await logIn(page, world.broker, "#/queues?sort=messages");
  await expect(page.getByRole("heading", { name: "May Courser know who you are?" })).toBeVisible();
  await page.getByRole("link", { name: "Allow" }).click();
  await expect(heading(page, "Queues")).toBeVisible();
  await expect(page).toHaveURL(`${world.broker.address}/#/queues?sort=messages`);
  await expect(page.locator("summary", { hasText: "alice" })).toBeVisible();
  const seen = await page.evaluate(() => JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML]));
  const cookies = await page.context().cookies(world.broker.address);
  expect(cookies.map(({ name, httpOnly, sameSite }) => [name.replace(/_\d+$/, ""), httpOnly, sameSite])).toEqual([["courser_session", true, "Strict"]]);
  expect(world.provider.secrets.length).toBeGreaterThan(3);
  for (const secret of [SECRET, ...world.provider.secrets]) {
    expect(seen).not.toContain(secret);
    expect(world.broker.log()).not.toContain(secret);
  }
});

test("names and passwords go on to count beside the provider", async ({ page, world }) => {
  await page.goto(world.broker.address);
  await expect(toProvider(page)).toBeFocused();
  await page.getByLabel("User").fill("guest");
  await page.getByLabel("Password").fill("guest");
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await expect(heading(page, "Overview")).toBeVisible();
  await page.locator("summary", { hasText: "guest" }).click();
  await page.getByRole("button", { name: "Log out" }).click();
  await expect(toProvider(page)).toBeVisible();
  expect(world.provider.logouts, "who did not log in there does not log out there").toBe(0);
});

test("where only tokens count there is one way in", async ({ page, world }) => {
  await page.goto(world.strict.address);
  await expect(toProvider(page)).toBeVisible();
  await expect(page.getByLabel("Password")).toBeHidden();
  const asked = await fetch(`${world.strict.address}/api/whoami`, { headers: { authorization: `Basic ${btoa("guest:guest")}` } });
  expect([asked.status, (await asked.json()).reason]).toEqual([401, "HTTP access denied: basic auth disabled"]);
  await toProvider(page).click();
  await expect(heading(page, "Overview")).toBeVisible();
});

test("who logs out is logged out of the provider too, and comes back", async ({ page, world }) => {
  await logIn(page, world.broker);
  await expect(heading(page, "Overview")).toBeVisible();
  await page.reload();
  await expect(heading(page, "Overview")).toBeVisible();
  await page.locator("summary", { hasText: "alice" }).click();
  // The way to the provider and back is one load of a page; what is here before it asks to log in too.
  const isBack = page.waitForEvent("load");
  await page.getByRole("button", { name: "Log out" }).click();
  await isBack;
  expect(world.provider.logouts).toBe(1);
  await expect(toProvider(page)).toBeVisible();
  await page.reload();
  await expect(toProvider(page)).toBeVisible();
});

test("a token is renewed while the page is used, and after it was over", async ({ page, world }) => {
  world.provider.ways.lifetime = 7;
  await logIn(page, world.broker);
  await expect(heading(page, "Overview")).toBeVisible();
  await expect.poll(() => world.provider.refreshes, { timeout: 20_000 }).toBeGreaterThan(1);
  await expect(heading(page, "Overview")).toBeVisible();
  await page.goto("about:blank");
  await page.waitForTimeout(8000);
  await page.goto(world.broker.address);
  await expect(heading(page, "Overview")).toBeVisible();
});

test("with other scopes in the new token the user may do other things", async ({ page, world }) => {
  world.provider.ways.lifetime = 5;
  await logIn(page, world.broker);
  await expect(page.getByRole("link", { name: "Audit log" })).toBeVisible();
  world.provider.ways.scope = "mq.tag:management mq.read:*/*";
  await expect.poll(() => world.provider.refreshes).toBeGreaterThan(1);
  await visit(page, "audit", "Audit log").catch(() => undefined);
  await expect(page.getByText("Not allowed").first()).toBeVisible();
});

for (const [why, renews] of [
  ["nothing renews it", false],
  ["the provider has taken back what renews it", true],
] as const) {
  test(`a token that is over ends the session where ${why}, and the view is kept`, async ({ page, world }) => {
    world.provider.ways.lifetime = 4;
    world.provider.ways.renews = renews;
    await logIn(page, world.broker, "#/exchanges");
    await expect(heading(page, "Exchanges")).toBeVisible();
    world.provider.revoke();
    await expect(page.getByText("The session has ended. Log in again.")).toBeVisible();
    world.provider.ways.lifetime = 600;
    await toProvider(page).click();
    await expect(heading(page, "Exchanges")).toBeVisible();
  });
}

test("while the provider is down a token that is over is not the end of the session", async ({ page, world }) => {
  world.provider.ways.lifetime = 5;
  await logIn(page, world.broker, "#/queues");
  await expect(heading(page, "Queues")).toBeVisible();
  world.provider.ways.faults["/token"] = { status: 502, body: "" };
  await expect(page.getByRole("alert")).toContainText("/token answered 502", { timeout: 30_000 });
  world.provider.ways.faults = {};
  await expect(page.getByRole("alert")).toBeHidden();
});

test("who denies it is told so, and may try again", async ({ page, world }) => {
  world.provider.ways.knowsConsent = false;
  await logIn(page, world.broker);
  await page.getByRole("link", { name: "Deny" }).click();
  await expect(page.getByRole("alert")).toHaveText("Example did not log you in (access_denied). The login was refused or given up there. It says: “Alice said no.”");
  await expect(page).toHaveURL(`${world.broker.address}/`);
  world.provider.ways.knowsConsent = true;
  await toProvider(page).click();
  await expect(heading(page, "Overview")).toBeVisible();
});

test("a code that another browser has begun with is refused", async ({ browser, page, world }) => {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const link = await wayBack(await context.newPage(), world);
  await context.close();
  await page.goto(link);
  await expect(page.getByRole("alert")).toContainText("This login was not begun in this browser");
  await expect(page).toHaveURL(`${world.broker.address}/`);
  world.provider.ways.knowsConsent = true;
  await toProvider(page).click();
  await expect(heading(page, "Overview")).toBeVisible();
});

test("a code that comes back with another state is refused", async ({ page, world }) => {
  const link = new URL(await wayBack(page, world));
  link.searchParams.set("state", "another");
  await page.goto(link.href);
  await expect(page.getByRole("alert")).toContainText("This login was not begun in this browser");
});

test("a code is good once", async ({ page, world }) => {
  const link = await wayBack(page, world);
  await page.goto(link);
  await expect(heading(page, "Overview")).toBeVisible();
  await page.context().clearCookies();
  await page.goto(link);
  await expect(page.getByRole("alert")).toContainText("This login was not begun in this browser");
});

test("words in a link that the page did not ask for are not shown", async ({ page, world }) => {
  await page.goto(`${world.broker.address}/?state=x&error=access_denied&error_description=Call+555-0100`);
  await expect(page.getByRole("alert")).toContainText("Example did not log you in");
  await expect(page.getByText("555")).toBeHidden();
  await page.goto(`${world.broker.address}/?state=x&error=${encodeURIComponent("Call 555-0100")}`);
  await expect(page.getByRole("alert")).toContainText("did not say why");
  await expect(page.getByText("555")).toBeHidden();
});

test("a link with an error logs no user out", async ({ page, world }) => {
  await logIn(page, world.broker);
  await expect(heading(page, "Overview")).toBeVisible();
  await page.goto(`${world.broker.address}/?state=x&error=access_denied`);
  await expect(heading(page, "Overview")).toBeVisible();
});

test("a provider that does not answer is said, at the beginning and at the end", async ({ page, world }) => {
  const lost = await OwnBroker.start({ ...settings(world.provider), OAUTH_ISSUER: "https://localhost:9", OAUTH_PROVIDER_NAME: "" });
  await page.goto(lost.address);
  await page.getByRole("button", { name: "Log in with localhost" }).click();
  await expect(page.getByRole("alert")).toContainText("https://localhost:9/.well-known/openid-configuration: ");
  await lost.stop();
  world.provider.ways.faults["/token"] = { status: 503, body: "<h1>Maintenance</h1>" };
  await logIn(page, world.broker);
  await expect(page.getByRole("alert")).toContainText("/token answered 503 Service Unavailable");
});

test("a provider that refuses the code is quoted", async ({ page, world }) => {
  world.provider.ways.faults["/token"] = { status: 401, body: JSON.stringify({ error: "invalid_client", error_description: "Who are you?" }) };
  await logIn(page, world.broker);
  await expect(page.getByRole("alert")).toContainText("refused (invalid_client: Who are you?)");
});

for (const [what, ways, said] of [
  ["without a tag in its scopes", { scope: "mq.read:*/*" }, "You are logged in at Example, but your token has no scope with one of the tags that let you in here: management, "],
  ["for another audience", { audience: "other" }, "The broker does not accept the provider's token: the token is not for the resource server 'mq' ('aud')"],
  ["that is over", { lifetime: -10 }, "The broker does not accept the provider's token: the token expired at "],
  ["that is no JWT", { opaque: true }, "it is not a JWT"],
] as const) {
  test(`a token ${what} is refused in words`, async ({ page, world }) => {
    Object.assign(world.provider.ways, ways);
    await logIn(page, world.broker);
    await expect(page.getByRole("alert")).toContainText(said);
    await expect(toProvider(page)).toBeVisible();
  });
}

test("the ways in are there for the keyboard and for screen readers, light and dark", async ({ page, world }) => {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    for (const address of [world.broker.address, world.strict.address, `${world.broker.address}/?state=x&error=server_error`]) {
      await page.goto(address);
      await expect(toProvider(page)).toBeFocused();
      expect(await barriers(page)).toEqual([]);
    }
  }
  await page.goto(world.broker.address);
  await expect(toProvider(page)).toBeFocused();
  await page.keyboard.press("Tab");
  await expect(page.getByLabel("User")).toBeFocused();
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Enter");
  await expect(heading(page, "Overview")).toBeVisible();
});

/** Where the provider would send the browser after the consent. */
async function wayBack(page: Page, world: World): Promise<string> {
  world.provider.ways.knowsConsent = false;
  await logIn(page, world.broker);
  const allow = new URL((await page.getByRole("link", { name: "Allow" }).getAttribute("href"))!, world.provider.address);
  const answer = await page.context().request.get(allow.href, { maxRedirects: 0 });
  return answer.headers().location!;
}
