// Windows over the page: what is to be done, how it is done as a command, and what came of it.
import { createEffect, createSignal, createUniqueId, Show, type JSX, type ParentProps } from "solid-js";
import { ApiError, curl, send, shellWord, type Action } from "../lib/http";
import { user, withToken } from "../lib/session";
import { Button, Code, Problem } from "./bits";
import { tell } from "./toast";

interface DialogProps {
  title: string;
  open: boolean;
  close: () => void;
  wide?: boolean;
}

export function Dialog(props: ParentProps<DialogProps>) {
  let element!: HTMLDialogElement;
  const id = createUniqueId();
  createEffect(() => {
    if (props.open && !element.open) element.showModal();
    if (!props.open && element.open) element.close();
  });
  const outside = (event: MouseEvent) => event.target === element && props.close();
  const escape = (event: Event) => {
    // A dialog within it, or a chosen file, is no matter of this one.
    if (event.target !== element) return;
    event.preventDefault();
    props.close();
  };
  // The event comes after the fact: by then it may be open again.
  const closed = () => !element.open && props.open && props.close();
  return (
    <dialog ref={element} aria-labelledby={id} classList={{ wide: props.wide }} onCancel={escape} onClose={closed} onMouseDown={outside}>
      <Show when={props.open}>
        <div class="dialog">
          <header>
            <h2 id={id}>{props.title}</h2>
            <Button kind="quiet" class="x" aria-label="Close" onClick={() => props.close()}>
              ✕
            </Button>
          </header>
          {props.children}
        </div>
      </Show>
    </dialog>
  );
}

/** Requests as commands, for a script or a colleague. */
export function AsCommand(props: { actions: Action[]; secret?: string; file?: string }) {
  // What is secret is not for the clipboard, nor for who looks on.
  const hide = (action: Action): Action => {
    if (!props.secret || action.body === undefined) return action;
    const body: unknown = JSON.parse(JSON.stringify(action.body), (_, value: unknown) => (value === props.secret ? "PASSWORD" : value));
    return { ...action, body };
  };
  const lines = () => props.actions.slice(0, 50).map((action) => curl(hide(action), withToken() ? undefined : (user()?.name ?? "guest")) + (props.file ? ` -d @${shellWord(props.file)}` : ""));
  const ctl = () => props.actions.slice(0, 50).flatMap((action) => action.ctl ?? []);
  return (
    <details class="as-command">
      <summary>As a command</summary>
      <Show when={ctl().length > 0}>
        <Code text={ctl().join("\n")} label="Copy the courser ctl command" />
      </Show>
      <Code text={lines().join("\n")} label="Copy the command" />
      <Show when={props.actions.length > 50}>
        <p class="muted">The first 50 of {props.actions.length}.</p>
      </Show>
    </details>
  );
}

interface DoProps {
  title: string;
  open: boolean;
  close: () => void;
  /** What is sent, one after the other. Nothing while the form is not filled in. */
  actions: Action[];
  verb: string;
  danger?: boolean;
  /** What has to be typed before it is done. */
  typed?: string;
  wide?: boolean;
  done?: (answers: unknown[]) => void;
  /** What is told when it is done. */
  told?: string;
  /** What the commands must not show. */
  secret?: string;
  /** The commands are said by the form itself. */
  hideCommand?: boolean;
  children?: JSX.Element;
}

/** A form or a question whose answer is sent to the broker. */
export function Do(props: DoProps) {
  const [busy, setBusy] = createSignal(0);
  const [error, setError] = createSignal<ApiError>();
  const [typed, setTyped] = createSignal("");
  const [finished, setFinished] = createSignal(0);
  createEffect(() => {
    if (props.open) {
      setError(undefined);
      setTyped("");
    }
  });
  const ready = () => props.actions.length > 0 && busy() === 0 && (!props.typed || typed() === props.typed);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!ready()) return;
    const actions = props.actions;
    const answers: unknown[] = [];
    setError(undefined);
    setBusy(actions.length);
    setFinished(0);
    try {
      for (const action of actions) {
        answers.push(await send(action));
        setFinished(answers.length);
      }
      if (props.told) tell(props.told);
      props.close();
    } catch (failed) {
      if (!(failed instanceof ApiError)) throw failed;
      const some = answers.length > 0 ? ` ${answers.length} of ${actions.length} were done before.` : "";
      setError(new ApiError(failed.problem, failed.status, failed.message + some));
    } finally {
      setBusy(0);
      props.done?.(answers);
    }
  };
  return (
    <Dialog title={props.title} open={props.open} close={props.close} wide={props.wide}>
      <form onSubmit={submit} class="do">
        <div class="dialog-body">
          {props.children}
          <Show when={props.typed}>
            <label class="field">
              <span>
                Type <b class="mono">{props.typed}</b> to go on
              </span>
              <input value={typed()} onInput={(event) => setTyped(event.currentTarget.value)} autocomplete="off" spellcheck={false} />
            </label>
          </Show>
          <Show when={error()}>{(error) => <Problem error={error()} />}</Show>
          <Show when={props.actions.length > 0 && !props.hideCommand}>
            <AsCommand actions={props.actions} secret={props.secret} />
          </Show>
        </div>
        <footer>
          <Button onClick={() => props.close()}>Cancel</Button>
          <button type="submit" class={`button ${props.danger ? "danger" : "main"}`} disabled={!ready()}>
            {busy() > 1 ? `${finished()} of ${busy()}` : busy() ? "…" : props.verb}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** A button that opens a question. */
export function Ask(props: Omit<DoProps, "open" | "close"> & { label: string; kind?: "plain" | "main" | "danger" | "quiet"; disabled?: boolean; why?: string }) {
  const [open, setOpen] = createSignal(false);
  return (
    <>
      <Button kind={props.kind ?? (props.danger ? "danger" : "plain")} disabled={props.disabled} title={props.why} onClick={() => setOpen(true)}>
        {props.label}
      </Button>
      <Do {...props} open={open()} close={() => setOpen(false)} />
    </>
  );
}
