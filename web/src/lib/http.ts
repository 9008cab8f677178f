// Requests to the broker, and what becomes of them.
import { createSignal } from "solid-js";

export type Method = "GET" | "PUT" | "POST" | "DELETE";

/** A request as people see it: it can be sent, and shown as a command. */
export interface Action {
  method: Method;
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
  /** The same on the command line of the broker, where it has it. */
  ctl?: string;
}

export type Problem = "gone" | "login" | "forbidden" | "missing" | "refused" | "broken";

export class ApiError extends Error {
  constructor(
    readonly problem: Problem,
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Milliseconds that an answer may take: what is only read is asked again and again. */
const READ_MS_MAX = 10_000;
const ACTION_MS_MAX = 60_000;
/** What reads many messages takes as long as an action. */
export const SEARCH_MS_MAX = ACTION_MS_MAX;

/** Whether the broker answered the last time, and when it did. */
const [reachable, setReachable] = createSignal(true);
const [answeredAt, setAnsweredAt] = createSignal(0);
export { answeredAt, reachable };

let onLoginLost: () => void = () => {};

/** Calls `then` when the session has ended. */
export function whenLoginLost(then: () => void): void {
  onLoginLost = then;
}

/** A segment of a path. */
export const seg = (text: string): string => encodeURIComponent(text);

/** The default exchange has no name; its segment can't be empty everywhere. */
export const exchangeSeg = (name: string): string => seg(name === "" ? "amq.default" : name);

export type Query = Record<string, string | number | boolean | undefined>;

export function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&");
  return text ? `${path}?${text}` : path;
}

export const address = (path: string): string => new URL(`.${path}`, document.baseURI).href;

interface Sending {
  signal?: AbortSignal;
  /** Milliseconds that the answer may take. */
  limitMs?: number;
  vhost?: string;
  /** Whether a refused login is the end of the session, or of an attempt. */
  isAttempt?: boolean;
}

/** Sends a request and reads the JSON that is answered. */
export async function send<T = unknown>(action: Action, sending: Sending = {}): Promise<T> {
  const limitMs = sending.limitMs ?? (action.method === "GET" ? READ_MS_MAX : ACTION_MS_MAX);
  const limit = AbortSignal.timeout(limitMs);
  const signal = sending.signal ? AbortSignal.any([sending.signal, limit]) : limit;
  const askedAt = Date.now();
  let response: Response;
  let text: string;
  try {
    response = await answered(action, { ...sending, signal });
    // A broker can also hang between the head of an answer and its end.
    text = await response.text();
  } catch (error) {
    if (sending.signal?.aborted) throw error;
    const unknown = action.method === "GET" ? "" : " Whether it was done is not known.";
    throw lost(askedAt, (limit.aborted ? `No answer within ${limitMs / 1000} s.` : "The connection failed.") + unknown);
  }
  setAnsweredAt(Date.now());
  if (!response.ok) throw failure(response.status, text, !sending.isAttempt);
  if (text === "") return undefined as T;
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new ApiError("broken", response.status, "The answer can't be read: it is no JSON.");
  }
}

/** An answer that goes on and on. */
export async function open(path: string, signal: AbortSignal, headers: Record<string, string> = {}): Promise<ReadableStream<Uint8Array>> {
  const askedAt = Date.now();
  const response = await answered({ method: "GET", path, headers }, { signal }).catch((error: unknown) => {
    throw signal.aborted ? error : lost(askedAt, "The connection failed.");
  });
  if (!response.ok) throw failure(response.status, await response.text().catch(() => ""), true);
  if (!response.body) throw new ApiError("broken", response.status, "The answer is empty.");
  return response.body;
}

export const get = <T>(path: string, sending: Sending = {}): Promise<T> =>
  send<T>({ method: "GET", path }, sending);

async function answered(action: Action, sending: Sending): Promise<Response> {
  // No page of another site can send this header: it says that the request is meant.
  const headers: Record<string, string> = { accept: "application/json", "x-courser-csrf": "1", ...action.headers };
  if (sending.vhost !== undefined) headers["x-vhost"] = encodeHeader(sending.vhost);
  let body: string | undefined;
  if (action.body !== undefined) {
    headers["content-type"] = "application/json";
    body = JSON.stringify(action.body);
  }
  const response = await fetch(address(action.path), {
    method: action.method,
    headers,
    body,
    signal: sending.signal,
    credentials: "same-origin",
    cache: "no-store",
  });
  setReachable(true);
  return response;
}

/** One slow answer is no sign of a broker that is gone while others arrive. */
function lost(askedAt: number, reason: string): ApiError {
  if (answeredAt() <= askedAt) setReachable(false);
  return new ApiError("gone", 0, reason);
}

/** Headers are bytes: the broker reads them as UTF-8. */
function encodeHeader(text: string): string {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

function failure(status: number, text: string, ofSession: boolean): ApiError {
  let error = "";
  let reason = "";
  try {
    const body = JSON.parse(text) as { error?: unknown; reason?: unknown };
    error = String(body.error ?? "");
    reason = typeof body.reason === "string" ? body.reason : JSON.stringify(body.reason ?? "");
  } catch {
    reason = text.slice(0, 500);
  }
  if (status === 401 && error !== "not_authorised") {
    if (ofSession) onLoginLost();
    return new ApiError("login", status, "The session has ended.");
  }
  if (status === 401 || status === 403) return new ApiError("forbidden", status, reason || "Not allowed.");
  if (status === 404) return new ApiError("missing", status, reason || "Not found.");
  if (status >= 500) return new ApiError("broken", status, reason || `The broker answered ${status}.`);
  return new ApiError("refused", status, reason || error || `The broker answered ${status}.`);
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The request for a shell. Without a user it is let in by a token. */
export function curl(action: Action, user: string | undefined): string {
  const parts = user === undefined ? ["curl", "-H", '"Authorization: Bearer $TOKEN"'] : ["curl", "-u", quoted(user)];
  if (action.method !== "GET") parts.push("-X", action.method);
  for (const [name, value] of Object.entries(action.headers ?? {})) parts.push("-H", quoted(`${name}: ${value}`));
  if (action.body !== undefined) {
    parts.push("-H", quoted("content-type: application/json"), "-d", quoted(JSON.stringify(action.body)));
  }
  parts.push(quoted(address(action.path)));
  return parts.join(" ");
}

/** A word of a command line. */
export const shellWord = (text: string): string => (/^[\w./@:=+-]+$/.test(text) ? text : quoted(text));
