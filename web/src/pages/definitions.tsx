// What the broker is made of: as a file, and from one.
import { createSignal, For, Show } from "solid-js";
import { exact, bytes } from "../lib/format";
import { ApiError, get, SEARCH_MS_MAX, seg, withQuery, type Action } from "../lib/http";
import { vhost } from "../lib/route";
import { download } from "../lib/save";
import { Button, Panel, Problem } from "../ui/bits";
import { AsCommand, Do } from "../ui/dialog";
import { Difference } from "./difference";
import { tell } from "../ui/toast";

const PARTS = ["users", "vhosts", "permissions", "topic_permissions", "parameters", "global_parameters", "policies", "queues", "exchanges", "bindings"];

type Definitions = Record<string, unknown>;

export function Definitions() {
  const [error, setError] = createSignal<ApiError>();
  const [file, setFile] = createSignal<{ name: string; size: number; definitions: Definitions }>();
  const where = () => (vhost() === undefined ? "/api/definitions" : `/api/definitions/${seg(vhost()!)}`);
  const of = () => (vhost() === undefined ? "the whole broker" : `the vhost ${vhost()}`);
  const exportAction = (): Action => ({ method: "GET", path: where() });
  const save = async () => {
    setError(undefined);
    try {
      const all = await get<Definitions>(where(), { limitMs: SEARCH_MS_MAX });
      const day = new Date().toISOString().slice(0, 10);
      download(`definitions-${vhost() === undefined ? "" : `${vhost()!.replaceAll(/[^\w.-]/g, "_")}-`}${day}.json`, JSON.stringify(all, null, 2));
      tell("Saved.");
    } catch (failed) {
      if (!(failed instanceof ApiError)) throw failed;
      setError(failed);
    }
  };
  const read = async (input: HTMLInputElement) => {
    const chosen = input.files?.[0];
    input.value = "";
    if (!chosen) return;
    setError(undefined);
    try {
      const definitions = JSON.parse(await chosen.text()) as Definitions;
      if (typeof definitions !== "object" || definitions === null || Array.isArray(definitions)) throw new Error("it is no object");
      setFile({ name: chosen.name, size: chosen.size, definitions });
    } catch (failed) {
      setError(new ApiError("refused", 0, `${chosen.name} has no definitions: ${(failed as Error).message}.`));
    }
  };
  const counts = () => PARTS.map((part): [string, number] => [part.replaceAll("_", " "), (file()?.definitions[part] as unknown[] | undefined)?.length ?? 0]).filter(([, count]) => count > 0);
  const importAction = (): Action => ({ method: "POST", path: where(), body: file()!.definitions });
  return (
    <>
      <header class="page-head"><h1>Definitions</h1></header>
      <p class="lead">Users, vhosts, permissions, policies, queues, exchanges and bindings of {of()}, without messages. Choose a vhost above for one alone.</p>
      <Show when={error()}>{(error) => <Problem error={error()} />}</Show>
      <div class="columns">
        <Panel title="Save">
          <p>A file that this broker and RabbitMQ can read. Passwords are in it as hashes.</p>
          <Button kind="main" onClick={save}>Save definitions</Button>
          <AsCommand actions={[exportAction()]} />
        </Panel>
        <Panel title="Load">
          <p>Creates or overwrites what is in the file; everything else stays. Existing queues and exchanges are not changed.</p>
          <label class="button plain file">
            Choose a file…
            <input type="file" accept=".json,application/json" class="unseen" onChange={(event) => void read(event.currentTarget)} />
          </label>
        </Panel>
      </div>
      <Do title="Load definitions" open={file() !== undefined} close={() => setFile(undefined)} wide verb="Load" told="Loaded." actions={file() ? [importAction()] : []} hideCommand>
        <p><b>{file()!.name}</b>, {bytes(file()!.size)}, into {of()}:</p>
        <ul class="preview"><For each={counts()} fallback={<li class="muted">nothing that this broker knows</li>}>{([part, count]) => <li>{part} <b>{exact(count)}</b></li>}</For></ul>
        <Difference trial={{ ...importAction(), path: withQuery(where(), { dry_run: true }) }} />
        <p class="muted small">This is not a transaction: what was imported before an error stays.</p>
        <AsCommand actions={[{ ...importAction(), body: undefined, headers: { "content-type": "application/json" } }]} file={file()!.name} />
      </Do>
    </>
  );
}
