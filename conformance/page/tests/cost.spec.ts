// What the page costs with many queues and connections: how long a view takes, what it holds in the browser, and what
// asking again and again costs the broker. Measured on demand, `COURSER_PAGE_COST=1 run cost`: minutes of a quiet machine.
import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { crowd } from "../crowd";
import { amqpPort, api, expect, login, test, visit } from "../support";

const [QUEUES, CONNECTIONS] = [Number(process.env.COURSER_PAGE_QUEUES ?? 100_000), Number(process.env.COURSER_PAGE_CONNECTIONS ?? 10_000)];
const QUEUES_AT_ONCE = 10_000;
const ROUNDS = 7;
const WATCHED_S = 60;
const TICKS_A_SECOND = 100;

/** Views, and what is there when they have answered. */
const VIEWS: [string, string, string][] = [
  ["overview", "Overview", ".tile"],
  ["queues", "Queues", "main tbody tr"],
  ["queues?sort=messages_ready&desc=1", "Queues", "main tbody tr"],
  ["queues?sort=message_stats.publish_details.rate&desc=1", "Queues", "main tbody tr"],
  ["queues?name=many.099", "Queues", "main tbody tr"],
  ["queues?page=2000", "Queues", "main tbody tr"],
  ["connections", "Connections", "main tbody tr"],
  ["connections?sort=recv_oct_details.rate&desc=1", "Connections", "main tbody tr"],
  ["connections?page=200", "Connections", "main tbody tr"],
  ["channels", "Channels", "main .empty"],
  ["exchanges", "Exchanges", "main tbody tr"],
  ["queues/%2F/many.000001", "many.000001", ".tile"],
  ["topology", "Topology", ".picture, main .empty"],
];

test.skip(!process.env.COURSER_PAGE_COST, "measured on demand");
test.setTimeout(1_200_000);

async function makeQueues(): Promise<void> {
  for (let first = 0; first < QUEUES; first += QUEUES_AT_ONCE) {
    const names = Array.from({ length: Math.min(QUEUES_AT_ONCE, QUEUES - first) }, (_, nth) => `many.${String(first + nth).padStart(6, "0")}`);
    await api("POST", "/api/definitions", { queues: names.map((name) => ({ name, vhost: "/", durable: true, auto_delete: false, arguments: {} })) });
  }
}

/** Milliseconds until a view shows what it has to. */
async function timed(page: Page, path: string, selector: string): Promise<number> {
  return page.evaluate(
    ([path, selector]) =>
      new Promise<number>((done) => {
        const from = performance.now();
        // The old view may have the same: it has to be a new one.
        const before = document.querySelector(selector!);
        const look = () => {
          const found = document.querySelector(selector!);
          if (found && found !== before) done(performance.now() - from);
          else requestAnimationFrame(look);
        };
        location.hash = `#/${path}`;
        requestAnimationFrame(look);
      }),
    [path, selector],
  );
}

async function held(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize / 1e6;
}

function cpuSeconds(pid: string): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
}

async function watched(pid: string): Promise<number> {
  const [from, at] = [cpuSeconds(pid), Date.now()];
  await new Promise((done) => setTimeout(done, WATCHED_S * 1000));
  return ((cpuSeconds(pid) - from) / (Date.now() - at)) * 100_000;
}

test("with many queues and connections each view answers, holds little, and costs the broker little", async ({ page }) => {
  const [node] = (await api("GET", "/api/nodes")) as { os_pid: string }[];
  await makeQueues();
  const leave = await crowd("127.0.0.1", await amqpPort(), CONNECTIONS);
  try {
    const idle = await watched(node!.os_pid);
    await login(page);
    for (const [path, heading, selector] of VIEWS) {
      const times: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        await visit(page, "limits", "Limits");
        times.push(await timed(page, path, selector));
        await expect(page.getByRole("heading", { level: 1, name: heading })).toBeVisible();
      }
      times.sort((one, other) => one - other);
      console.log(`${path}: ${times[ROUNDS >> 1]!.toFixed(0)} ms, ${times.at(-1)!.toFixed(0)} ms at most, ${(await held(page)).toFixed(1)} MB held`);
    }
    console.log(`the broker without the page: ${idle.toFixed(2)} % of a core`);
    for (const path of ["overview", "queues?sort=message_stats.publish_details.rate&desc=1", "connections"]) {
      await visit(page, path, /./);
      console.log(`with ${path} open: ${(await watched(node!.os_pid)).toFixed(2)} % of a core; ${(await held(page)).toFixed(1)} MB held after ${WATCHED_S} s`);
    }
  } finally {
    leave();
  }
});
