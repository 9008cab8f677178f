// Who uses the page. The broker keeps the session; a cookie that no script can read stands for it.
import { createSignal } from "solid-js";
import { ApiError, get, send, whenLoginLost, type Action } from "./http";
import { arrival, logOutThere, NO_PROVIDER, type Auth, type EndSession } from "./oauth";

export interface User {
  name: string;
  tags: string[];
}

interface Session {
  user: User;
  /** A token has let the user in. */
  with_token: boolean;
}

const [user, setUser] = createSignal<User>();
/** Why no user is logged in, if that needs to be said. */
const [ended, setEnded] = createSignal("");
/** How the user shows who it is to other programs. */
const [withToken, setWithToken] = createSignal(false);
const [restoring, setRestoring] = createSignal(true);
/** How one can log in. */
const [auth, setAuth] = createSignal<Auth>(NO_PROVIDER);
/** Why the way over the provider of tokens did not end here. */
const [refused, setRefused] = createSignal("");
export { auth, ended, refused, restoring, user, withToken };

const attempt = (method: Action["method"], body?: unknown) => send<Session>({ method, path: "/api/login", body }, { isAttempt: true });

/** What the broker calls a user who has none of the tags. */
const isUntagged = (error: ApiError): boolean => error.problem === "forbidden" && error.message === "Not management user";
const TAGS = "management, policymaker, monitoring, administrator";

export async function login(username: string, password: string): Promise<void> {
  const session = await attempt("POST", { username, password }).catch((error: ApiError) => {
    if (error.problem === "login") {
      throw new ApiError("login", 401, "There is no such user, or the password is another one.");
    }
    if (isUntagged(error)) {
      throw new ApiError("forbidden", 401, `The user has none of the tags that let it in here: ${TAGS}.`);
    }
    throw error;
  });
  setEnded("");
  setRefused("");
  begin(session);
}

function begin(session: Session): void {
  setWithToken(session.with_token);
  setUser(session.user);
}

export async function logout(): Promise<void> {
  setUser(undefined);
  setEnded("");
  setRefused("");
  try {
    const left = await send<EndSession | undefined>({ method: "DELETE", path: "/api/login" }, { isAttempt: true });
    if (left) logOutThere(left);
  } catch {
    setEnded("The broker does not answer: the session lasts until it does, or until it is unused for long.");
  }
}

/** Takes up the session that this browser has. */
export async function restore(): Promise<void> {
  whenLoginLost(() => {
    if (!user()) return;
    setEnded("The session has ended. Log in again.");
    setUser(undefined);
  });
  const known = get<Auth>("/api/auth", { isAttempt: true }).then(setAuth, () => undefined);
  let session: Session | undefined;
  try {
    session = await arrival<Session>(known.then(auth));
  } catch (error) {
    setRefused(whyNotLetIn(error));
  }
  try {
    session ??= await attempt("GET");
    setEnded("");
    begin(session);
  } catch (error) {
    if (error instanceof ApiError && error.problem === "gone") setEnded("The broker does not answer.");
  }
  await known;
  setRestoring(false);
}

/** For who comes back from the provider of tokens, and is not let in. */
function whyNotLetIn(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  const provider = auth().oauth_provider_name ?? "the provider";
  if (isUntagged(error)) {
    return `You are logged in at ${provider}, but your token has no scope with one of the tags that let you in here: ${TAGS}. An administrator of ${provider} can add one.`;
  }
  return error.message;
}

const has = (tag: string): boolean => user()?.tags.includes(tag) ?? false;
export const isAdministrator = (): boolean => has("administrator");
export const isMonitor = (): boolean => isAdministrator() || has("monitoring");
export const isPolicymaker = (): boolean => isAdministrator() || has("policymaker");
