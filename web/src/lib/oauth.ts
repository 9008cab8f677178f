// Logging in at the provider that issues tokens. The broker brings the code there and keeps the tokens: the page only goes and comes back.
import { ApiError, address, send } from "./http";
import { settle } from "./route";

/** How one can log in. */
export interface Auth {
  oauth_enabled: boolean;
  oauth_disable_basic_auth?: boolean;
  oauth_provider_name?: string;
}

export const NO_PROVIDER: Auth = { oauth_enabled: false };

/** Where one logs out of the provider. */
export interface EndSession {
  end_session: string;
  client_id: string;
}

/** What is remembered in this tab while the user is at the provider. */
interface Away {
  state: string;
  hash: string;
}

const AWAY = "courser.away";

/** The address that the provider sends the browser back to. */
const page = (): string => address("/");

/** Goes to the provider. What is seen now is seen again afterwards. */
export async function goToProvider(): Promise<void> {
  const begun = await send<{ location: string; state: string }>({ method: "POST", path: "/api/oauth/login", body: { page: page() } }, { isAttempt: true });
  remember({ state: begun.state, hash: location.hash });
  location.assign(begun.location);
}

/** Goes to where one logs out of the provider, which sends the browser back here. */
export function logOutThere(left: EndSession): void {
  const target = new URL(left.end_session);
  target.searchParams.set("client_id", left.client_id);
  target.searchParams.set("post_logout_redirect_uri", page());
  location.assign(target.href);
}

/** What RFC 6749 (4.1.2.1) and OpenID Connect call the reasons for coming back without a code. */
const REASONS: Record<string, string> = {
  access_denied: "The login was refused or given up there.",
  invalid_scope: "It does not know the scopes that the broker asks for (oauth.client_scopes), or does not give them.",
  unauthorized_client: "It does not let this page log users in: look at the client's settings there.",
  unsupported_response_type: "It does not let this page log users in with a code: look at the client's settings there.",
  invalid_request: "It does not understand the request: look at the client's settings there, and at oauth.authorization_params.",
  server_error: "It has a fault. Try again later.",
  temporarily_unavailable: "It is not available now. Try again later.",
};

/** The session of who comes back from the provider; nothing for who does not. */
export async function arrival<T>(known: Promise<Auth>): Promise<T | undefined> {
  const said = new URLSearchParams(location.search);
  const [state, code, error] = ["state", "code", "error"].map((name) => said.get(name));
  if (!state || !(code || error)) return undefined;
  const away = recall();
  // A code is good once: it must not stay in the address.
  settle(location.hash || away?.hash || "");
  if (!code) throw new ApiError("refused", 0, await reason(known, error ?? "", away?.state === state ? said.get("error_description") : null));
  return send<T>({ method: "POST", path: "/api/oauth/session", body: { page: page(), code, state } }, { isAttempt: true });
}

/** Words of the provider are shown only if they belong to a login of this tab: a stranger can make a link with others. */
async function reason(known: Promise<Auth>, error: string, description: string | null): Promise<string> {
  const name = (await known).oauth_provider_name || "The provider";
  const code = /^[a-z_]{1,60}$/.test(error) ? ` (${error})` : "";
  const words = REASONS[error] ?? "It did not say why in words that this page knows.";
  return `${name} did not log you in${code}. ${words}${description ? ` It says: \u201c${description.slice(0, 300)}\u201d` : ""}`;
}

function remember(away: Away): void {
  try {
    sessionStorage.setItem(AWAY, JSON.stringify(away));
  } catch {
    // Who comes back begins at the overview.
  }
}

function recall(): Away | undefined {
  try {
    const text = sessionStorage.getItem(AWAY);
    sessionStorage.removeItem(AWAY);
    return text === null ? undefined : (JSON.parse(text) as Away);
  } catch {
    return undefined;
  }
}
