// A provider that issues tokens, as far as people log in there: OpenID Connect with codes and PKCE, over HTTPS on the loopback.
import { execFileSync } from "node:child_process";
import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const CLIENT = "courser-page";
export const SECRET = "the+secret/of the page";

/** What it does, for a test to change. */
interface Ways {
  /** No user is asked whether the page may log them in. */
  knowsConsent: boolean;
  user: string;
  scope: string;
  audience: string;
  /** Seconds that a token is good for. */
  lifetime: number;
  renews: boolean;
  /** Tokens are no JWT. */
  opaque: boolean;
  /** What it answers at these paths instead: a status, and what else is to be said. */
  faults: Record<string, { status: number; body: string }>;
}

const USUAL: Ways = {
  knowsConsent: true,
  user: "alice",
  scope: "mq.tag:administrator mq.read:*/* mq.write:*/* mq.configure:*/*",
  audience: "mq",
  lifetime: 600,
  renews: true,
  opaque: false,
  faults: {},
};

interface Code {
  challenge: string;
  redirectUri: string;
}

type Fields = URLSearchParams;

export class Provider {
  ways: Ways = { ...USUAL };
  /** What pages may be sent back to. */
  readonly pages = new Set<string>();
  /** Everything secret that it has given out or been shown. */
  readonly secrets: string[] = [];
  refreshes = 0;
  logouts = 0;
  #codes = new Map<string, Code>();
  #refreshTokens = new Set<string>();
  #key: KeyObject;
  #jwk: object;

  private constructor(
    readonly folder: string,
    readonly server: Server,
  ) {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.#key = privateKey;
    this.#jwk = { ...publicKey.export({ format: "jwk" }), kid: "one", use: "sig", alg: "ES256" };
  }

  static async start(): Promise<Provider> {
    const folder = mkdtempSync(join(tmpdir(), "courser-provider-"));
    certificates(folder);
    const server = createServer({ key: readFileSync(join(folder, "own.key")), cert: readFileSync(join(folder, "own.pem")) });
    const provider = new Provider(folder, server);
    server.on("request", (request, answer) => void provider.#answer(request, answer));
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    return provider;
  }

  get address(): string {
    return `https://localhost:${(this.server.address() as AddressInfo).port}`;
  }

  /** The authority of its certificate. */
  get authority(): string {
    return join(this.folder, "authority.pem");
  }

  /** Does again what it usually does. */
  reset(): void {
    this.ways = { ...USUAL, faults: {} };
    this.refreshes = 0;
    this.logouts = 0;
  }

  /** Takes back what renews tokens. */
  revoke(): void {
    this.#refreshTokens.clear();
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
    rmSync(this.folder, { recursive: true });
  }

  async #answer(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.address);
    const fault = this.ways.faults[url.pathname];
    if (fault) return void answer.writeHead(fault.status, { "content-type": "application/json" }).end(fault.body);
    let body = "";
    for await (const piece of request) body += piece;
    if (url.pathname === "/.well-known/openid-configuration") return json(answer, 200, this.#about());
    if (url.pathname === "/keys") return json(answer, 200, { keys: [this.#jwk] });
    if (url.pathname === "/authorize") return this.#authorize(url.searchParams, answer);
    if (url.pathname === "/token") return this.#token(request, new URLSearchParams(body), answer);
    if (url.pathname === "/logout") return this.#logout(url.searchParams, answer);
    answer.writeHead(404).end();
  }

  #about(): object {
    return {
      issuer: this.address,
      jwks_uri: `${this.address}/keys`,
      authorization_endpoint: `${this.address}/authorize`,
      token_endpoint: `${this.address}/token`,
      end_session_endpoint: `${this.address}/logout`,
    };
  }

  /** A user is logged in here already, and is asked whether the page may know. */
  #authorize(asked: Fields, answer: ServerResponse): void {
    const text = (name: string) => asked.get(name) ?? "";
    const isGood = text("client_id") === CLIENT && text("response_type") === "code" && text("code_challenge_method") === "S256" && text("code_challenge").length === 43 && text("state") !== "";
    if (!isGood || !this.pages.has(text("redirect_uri"))) return void answer.writeHead(400).end("What page is that?");
    const back = (values: Record<string, string>) => `${text("redirect_uri")}?${new URLSearchParams({ ...values, state: text("state") })}`;
    const decided = asked.get("decided") ?? (this.ways.knowsConsent ? "yes" : "");
    if (decided === "yes") {
      const code = randomBytes(16).toString("hex");
      this.secrets.push(code);
      this.#codes.set(code, { challenge: text("code_challenge"), redirectUri: text("redirect_uri") });
      return void answer.writeHead(302, { location: back({ code }) }).end();
    }
    if (decided === "no") return void answer.writeHead(302, { location: back({ error: "access_denied", error_description: "Alice said no." }) }).end();
    const decide = (how: string) => `/authorize?${new URLSearchParams([...asked.entries(), ["decided", how]])}`.replaceAll("&", "&amp;");
    const page = `<!doctype html><title>Log in</title><h1>May Courser know who you are?</h1><a href="${decide("yes")}">Allow</a> <a href="${decide("no")}">Deny</a>`;
    answer.writeHead(200, { "content-type": "text/html" }).end(page);
  }

  #token(request: IncomingMessage, form: Fields, answer: ServerResponse): void {
    const text = (name: string) => form.get(name) ?? "";
    const refuse = (error: string, why: string) => json(answer, 400, { error, error_description: why });
    const quoted = (part: string) => new URLSearchParams({ "": part }).toString().slice(1);
    const expected = `Basic ${Buffer.from(`${quoted(CLIENT)}:${quoted(SECRET)}`).toString("base64")}`;
    if (request.headers.authorization !== expected || text("client_id") !== CLIENT) return refuse("invalid_client", "the secret is another one");
    if (text("grant_type") === "refresh_token") {
      // Each is good once.
      if (!this.#refreshTokens.delete(text("refresh_token"))) return refuse("invalid_grant", "the refresh token is not known");
      this.refreshes += 1;
      return json(answer, 200, this.#issue());
    }
    const code = this.#codes.get(text("code"));
    this.#codes.delete(text("code"));
    if (text("grant_type") !== "authorization_code" || !code) return refuse("invalid_grant", "the code is not known");
    this.secrets.push(text("code_verifier"));
    const challenge = createHash("sha256").update(text("code_verifier")).digest("base64url");
    if (challenge !== code.challenge) return refuse("invalid_grant", "the verifier does not fit");
    if (text("redirect_uri") !== code.redirectUri) return refuse("invalid_grant", "the page is another one");
    json(answer, 200, this.#issue());
  }

  #issue(): object {
    const { user, scope, audience, lifetime, renews, opaque } = this.ways;
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: this.address, sub: `id-of-${user}`, preferred_username: user, aud: audience, iat: now, exp: now + lifetime, scope };
    const access = opaque ? randomBytes(32).toString("hex") : this.#signed(claims);
    const refresh = randomBytes(32).toString("hex");
    this.secrets.push(access, refresh);
    if (renews) this.#refreshTokens.add(refresh);
    return { access_token: access, token_type: "Bearer", expires_in: lifetime, ...(renews ? { refresh_token: refresh } : {}) };
  }

  #signed(claims: object): string {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const text = `${part({ alg: "ES256", typ: "JWT", kid: "one" })}.${part(claims)}`;
    return `${text}.${sign("sha256", Buffer.from(text), { key: this.#key, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
  }

  #logout(asked: Fields, answer: ServerResponse): void {
    const page = asked.get("post_logout_redirect_uri") ?? "";
    if (asked.get("client_id") !== CLIENT || !this.pages.has(page)) return void answer.writeHead(400).end("What page is that?");
    this.logouts += 1;
    answer.writeHead(302, { location: page }).end();
  }
}

function json(answer: ServerResponse, status: number, value: object): void {
  answer.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" }).end(JSON.stringify(value));
}

/** An authority, and a certificate for the loopback that it has signed. */
function certificates(folder: string): void {
  const openssl = (...words: string[]) => execFileSync("openssl", words, { cwd: folder, stdio: "pipe" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  openssl("req", "-x509", ...key, "-days", "2", "-subj", "/CN=authority", "-keyout", "authority.key", "-out", "authority.pem");
  openssl("req", "-x509", ...key, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
    "-addext", "basicConstraints=critical,CA:FALSE", "-CA", "authority.pem", "-CAkey", "authority.key", "-keyout", "own.key", "-out", "own.pem");
}
