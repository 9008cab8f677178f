// Brokers that single tests start, with settings of their own.
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class OwnBroker {
  private constructor(
    readonly address: string,
    readonly folder: string,
    readonly process: ChildProcess,
  ) {}

  /** With these settings besides, as variables without `COURSER_`. */
  static async start(settings: Record<string, string>): Promise<OwnBroker> {
    const binary = process.env.COURSER_TEST_BINARY;
    if (!binary) throw new Error("COURSER_TEST_BINARY does not name the broker");
    const folder = mkdtempSync(join(tmpdir(), "courser-own-"));
    const [amqp, http] = [await freePort(), await freePort()];
    const named = Object.entries({ MANAGEMENT_LISTEN: `127.0.0.1:${http}`, METRICS_LISTEN: "none", LOG_LEVEL: "debug", ...settings });
    const log = openSync(join(folder, "log"), "w");
    const broker = spawn(binary, ["--listen", `127.0.0.1:${amqp}`, "--data-dir", join(folder, "data")], {
      env: { ...process.env, ...Object.fromEntries(named.map(([name, value]) => [`COURSER_${name}`, value])) },
      stdio: ["ignore", log, log],
    });
    const own = new OwnBroker(`http://127.0.0.1:${http}`, folder, broker);
    await own.#isReady();
    return own;
  }

  /** What it has logged. */
  log(): string {
    return readFileSync(join(this.folder, "log"), "utf8");
  }

  async stop(): Promise<void> {
    const ended = new Promise((done) => this.process.once("exit", done));
    this.process.kill();
    await ended;
    rmSync(this.folder, { recursive: true });
  }

  async #isReady(): Promise<void> {
    for (let tries = 0; tries < 300; tries += 1) {
      if (this.process.exitCode !== null) break;
      const answer = await fetch(`${this.address}/health/ready`).catch(() => undefined);
      if (answer?.ok) return;
      await new Promise((done) => setTimeout(done, 100));
    }
    throw new Error(`the broker does not start: ${this.log().slice(-2000)}`);
  }
}

function freePort(): Promise<number> {
  return new Promise((done) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => done(port));
    });
  });
}
