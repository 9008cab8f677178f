// Who uses the page. The broker keeps the session; a cookie that no script can read stands for it.
import { createSignal } from "solid-js";
import { ApiError, send, whenLoginLost, type Action } from "./http";

export interface User {
  name: string;
  tags: string[];
}

interface Session {
  user: User;
}

const [user, setUser] = createSignal<User>();
/** Why nobody is logged in, if that needs to be said. */
const [ended, setEnded] = createSignal("");
const [restoring, setRestoring] = createSignal(true);
export { ended, restoring, user };

const attempt = (method: Action["method"], body?: unknown) => send<Session>({ method, path: "/api/login", body }, { isAttempt: true });

export async function login(username: string, password: string): Promise<void> {
  const session = await attempt("POST", { username, password }).catch((error: ApiError) => {
    if (error.problem === "login") {
      throw new ApiError("login", 401, "There is no such user, or the password is another one.");
    }
    if (error.problem === "forbidden" && error.message === "Not management user") {
      const tags = "management, policymaker, monitoring, administrator";
      throw new ApiError("forbidden", 401, `The user has none of the tags that let it in here: ${tags}.`);
    }
    throw error;
  });
  setEnded("");
  setUser(session.user);
}

export function logout(): void {
  setUser(undefined);
  setEnded("");
  attempt("DELETE").catch(() => setEnded("The broker does not answer: the session lasts until it does, or until it is unused for long."));
}

/** Takes up the session that this browser has. */
export async function restore(): Promise<void> {
  whenLoginLost(() => {
    if (!user()) return;
    setEnded("The session has ended. Log in again.");
    setUser(undefined);
  });
  try {
    const session = await attempt("GET");
    setEnded("");
    setUser(session.user);
  } catch (error) {
    if (error instanceof ApiError && error.problem === "gone") setEnded("The broker does not answer.");
  }
  setRestoring(false);
}

const has = (tag: string): boolean => user()?.tags.includes(tag) ?? false;
export const isAdministrator = (): boolean => has("administrator");
export const isMonitor = (): boolean => isAdministrator() || has("monitoring");
export const isPolicymaker = (): boolean => isAdministrator() || has("policymaker");
