// The way in.
import { createSignal, onCleanup, onMount, Show } from "solid-js";
import { ApiError } from "../lib/http";
import { goToProvider } from "../lib/oauth";
import { auth, ended, login, refused, restore } from "../lib/session";
import { Button } from "../ui/bits";

export function Login() {
  const [wrong, setWrong] = createSignal("");
  const [busy, setBusy] = createSignal(false);
  const byProvider = () => auth().oauth_enabled;
  const byName = () => !(byProvider() && auth().oauth_disable_basic_auth);
  const tried = async (attempt: () => Promise<void>): Promise<boolean> => {
    setBusy(true);
    setWrong("");
    try {
      await attempt();
      return true;
    } catch (error) {
      setWrong(error instanceof ApiError ? error.message : String(error));
      setBusy(false);
      return false;
    }
  };
  // Who goes back from the provider by the browser's button finds the page as it was left.
  const awake = () => setBusy(false);
  onMount(() => {
    document.title = "Log in · Courser";
    window.addEventListener("pageshow", awake);
    onCleanup(() => window.removeEventListener("pageshow", awake));
  });
  return (
    <main class="login">
      <div class="login-box">
        <h1>
          <Logo /> Courser
        </h1>
        <Show when={ended()}>
          <p class="notice" role="status">
            {ended()} <Show when={ended().includes("answer")}><Button kind="quiet" onClick={() => void restore()}>Try again</Button></Show>
          </p>
        </Show>
        <Show when={wrong() || refused()}>
          <p class="wrong" role="alert">
            {wrong() || refused()}
          </p>
        </Show>
        <Show when={byProvider()}>
          <Provider busy={busy()} tried={tried} />
        </Show>
        <Show when={byProvider() && byName()}>
          <p class="or muted">or</p>
        </Show>
        <Show when={byName()}>
          <ByName busy={busy()} tried={tried} isFirst={!byProvider()} />
        </Show>
        <p class="muted small">The session ends when you log out or after a long time without use.</p>
      </div>
    </main>
  );
}

interface WayIn {
  busy: boolean;
  /** Says what goes wrong, and whether anything did. */
  tried: (attempt: () => Promise<void>) => Promise<boolean>;
}

function Provider(props: WayIn) {
  let button!: HTMLButtonElement;
  onMount(() => button.focus());
  return (
    <button ref={button} class="button main" type="button" disabled={props.busy} onClick={() => void props.tried(goToProvider)}>
      Log in with {auth().oauth_provider_name}
    </button>
  );
}

function ByName(props: WayIn & { isFirst: boolean }) {
  const [name, setName] = createSignal("");
  const [password, setPassword] = createSignal("");
  let first!: HTMLInputElement;
  onMount(() => props.isFirst && first.focus());
  const [checking, setChecking] = createSignal(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setChecking(true);
    if (!(await props.tried(() => login(name(), password())))) setPassword("");
    setChecking(false);
  };
  return (
    <form onSubmit={submit}>
      <label class="field">
        <span>User</span>
        <input ref={first} name="username" autocomplete="username" required autocapitalize="none" spellcheck={false} value={name()} onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <label class="field">
        <span>Password</span>
        <input name="password" type="password" autocomplete="current-password" value={password()} onInput={(event) => setPassword(event.currentTarget.value)} />
      </label>
      <button class="button" classList={{ main: props.isFirst }} type="submit" disabled={props.busy}>
        {checking() ? "Checking…" : "Log in"}
      </button>
    </form>
  );
}

export const Logo = () => (
  <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="7" />
    <path d="M22.5 11.2A8 8 0 1 0 22.5 20.8M13 16h11m-4-4 4 4-4 4" />
  </svg>
);
