// The way in.
import { createSignal, onMount, Show } from "solid-js";
import { ApiError } from "../lib/http";
import { ended, login, restore } from "../lib/session";
import { Button } from "../ui/bits";

export function Login() {
  const [name, setName] = createSignal("");
  const [password, setPassword] = createSignal("");
  const [wrong, setWrong] = createSignal("");
  const [busy, setBusy] = createSignal(false);
  let first!: HTMLInputElement;
  onMount(() => {
    document.title = "Log in · Courser";
    first.focus();
  });
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setWrong("");
    try {
      await login(name(), password());
    } catch (error) {
      setWrong(error instanceof ApiError ? error.message : String(error));
      setPassword("");
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="login">
      <form onSubmit={submit}>
        <h1>
          <Logo /> Courser
        </h1>
        <Show when={ended()}>
          <p class="notice" role="status">
            {ended()} <Show when={ended().includes("answer")}><Button kind="quiet" onClick={() => void restore()}>Try again</Button></Show>
          </p>
        </Show>
        <label class="field">
          <span>User</span>
          <input ref={first} name="username" autocomplete="username" required autocapitalize="none" spellcheck={false} value={name()} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <label class="field">
          <span>Password</span>
          <input name="password" type="password" autocomplete="current-password" value={password()} onInput={(event) => setPassword(event.currentTarget.value)} />
        </label>
        <Show when={wrong()}>
          <p class="wrong" role="alert">
            {wrong()}
          </p>
        </Show>
        <button class="button main" type="submit" disabled={busy()}>
          {busy() ? "Checking…" : "Log in"}
        </button>
        <p class="muted small">The session ends when you log out or after a long time without use.</p>
      </form>
    </main>
  );
}

export const Logo = () => (
  <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="7" />
    <path d="M22.5 11.2A8 8 0 1 0 22.5 20.8M13 16h11m-4-4 4 4-4 4" />
  </svg>
);
