// A form that publishes: properties and headers with their types, what was published before, and templates.
import { createSignal, For, Show } from "solid-js";
import { createStore, unwrap } from "solid-js/store";
import { publish } from "../lib/actions";
import * as format from "../lib/format";
import { ApiError, send } from "../lib/http";
import { stored } from "../lib/store";
import { Button, Problem } from "../ui/bits";
import { AsCommand } from "../ui/dialog";
import { Area, Check, Entries, entriesValue, Select, Text, wrongEntry, type Entry } from "../ui/fields";

interface Draft {
  routingKey: string;
  payload: string;
  encoding: "string" | "base64";
  persistent: boolean;
  properties: Entry[];
  headers: Entry[];
  name?: string;
  at?: number;
}

const HISTORY = 15;
const HISTORY_CHARS = 20_000;
const FILE_BYTES = 7_000_000;
const REPEAT_MAX = 1000;
const PROPERTIES: Record<string, Entry["type"]> = {
  content_type: "text", content_encoding: "text", correlation_id: "text", reply_to: "text", expiration: "text", message_id: "text",
  type: "text", user_id: "text", app_id: "text", priority: "number", timestamp: "number",
};
const HEADERS: Record<string, Entry["type"]> = { CC: "JSON", BCC: "JSON", "x-delay": "number", "x-deduplication-header": "text", "x-stream-filter-value": "text" };

const [past, setPast] = stored<Draft[]>("published", []);
const [templates, setTemplates] = stored<Draft[]>("templates", []);

interface Props {
  vhost: string;
  exchange: string;
  routingKey?: string;
  done?: () => void;
}

export function Publish(props: Props) {
  const [draft, setDraft] = createStore<Draft>({ routingKey: props.routingKey ?? "", payload: "", encoding: "string", persistent: true, properties: [], headers: [] });
  const [repeat, setRepeat] = createSignal("1");
  const [busy, setBusy] = createSignal(0);
  const [error, setError] = createSignal<ApiError>();
  const [result, setResult] = createSignal("");
  const [template, setTemplate] = createSignal("");

  const built = () => {
    const [properties, headers] = [entriesValue(draft.properties), entriesValue(draft.headers)];
    if ("wrong" in properties) return properties;
    if ("wrong" in headers) return headers;
    const value = { ...properties.value, delivery_mode: draft.persistent ? 2 : 1, ...(Object.keys(headers.value).length > 0 && { headers: headers.value }) };
    return { action: publish(props.vhost, props.exchange, { routing_key: draft.routingKey, properties: value, payload: draft.payload, payload_encoding: draft.encoding }) };
  };
  const wrong = () => wrongEntry(draft.properties) || wrongEntry(draft.headers);
  const isJson = () => draft.properties.some((one) => one.key === "content_type" && one.value.includes("json"));
  const badJson = () => {
    if (!isJson() || draft.encoding !== "string" || draft.payload === "") return "";
    try {
      JSON.parse(draft.payload);
      return "";
    } catch (failed) {
      return `The content type says JSON, but: ${(failed as Error).message}`;
    }
  };
  const remember = () => {
    if (draft.payload.length > HISTORY_CHARS) return;
    const one = { ...structuredClone(unwrap(draft)), at: Date.now() };
    const same = (other: Draft) => JSON.stringify({ ...other, at: 0 }) === JSON.stringify({ ...one, at: 0 });
    setPast([one, ...past().filter((other) => !same(other))].slice(0, HISTORY));
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    const known = built();
    if ("wrong" in known) return;
    const times = Math.max(1, Math.min(REPEAT_MAX, Math.floor(Number(repeat())) || 1));
    setError(undefined);
    setResult("");
    let routed = 0;
    let sent = 0;
    try {
      for (; sent < times; sent += 1) {
        setBusy(times - sent);
        if ((await send<{ routed: boolean }>(known.action)).routed) routed += 1;
      }
      remember();
    } catch (failed) {
      if (!(failed instanceof ApiError)) throw failed;
      setError(failed);
    } finally {
      setBusy(0);
      if (sent > 0) setResult(routed === sent ? `${format.plural(sent, "message")} published and routed.` : `${format.plural(sent, "message")} published; ${sent - routed} went to no queue: nothing is bound with that key.`);
      props.done?.();
    }
  };
  const load = (one: Draft) => {
    const { name: _, at: __, ...rest } = one;
    setDraft(structuredClone(rest));
  };
  const file = async (input: HTMLInputElement) => {
    const chosen = input.files?.[0];
    if (!chosen) return;
    if (chosen.size > FILE_BYTES) return setError(new ApiError("refused", 0, `The file has ${format.bytes(chosen.size)}; ${format.bytes(FILE_BYTES)} are the most that a request takes.`));
    const bytes = new Uint8Array(await chosen.arrayBuffer());
    let text = "";
    for (let at = 0; at < bytes.length; at += 32_768) text += String.fromCharCode(...bytes.subarray(at, at + 32_768));
    setDraft({ payload: btoa(text), encoding: "base64" });
  };
  return (
    <form class="publish" onSubmit={submit}>
      <div class="publish-main">
        <div class="two">
          <Text label="Routing key" value={draft.routingKey} set={(value) => setDraft("routingKey", value)} />
          <Select label="The payload is" value={draft.encoding} set={(value) => setDraft("encoding", value as Draft["encoding"])} options={[["string", "text"], ["base64", "base64"]]} />
        </div>
        <Area label="Payload" rows={7} value={draft.payload} set={(value) => setDraft("payload", value)} hint={badJson() && <span class="wrong">{badJson()}</span>} />
        <div class="inline">
          <label class="button plain file">
            From a file…
            <input type="file" class="unseen" onChange={(event) => void file(event.currentTarget)} />
          </label>
          <Check checked={draft.persistent} set={(value) => setDraft("persistent", value)}>persistent</Check>
        </div>
        <Entries label="Properties" entries={draft.properties} set={(value) => setDraft("properties", value)} known={PROPERTIES} />
        <Entries label="Headers" entries={draft.headers} set={(value) => setDraft("headers", value)} known={HEADERS} />
        <Show when={wrong()}><p class="wrong" role="alert">{wrong()}</p></Show>
        <Show when={error()}>{(error) => <Problem error={error()} />}</Show>
        <p class="result" role="status">{result()}</p>
        <div class="inline">
          <Text label="Times" type="number" min="1" max={REPEAT_MAX} value={repeat()} set={setRepeat} />
          <button type="submit" class="button main" disabled={busy() > 0 || "wrong" in built()}>{busy() > 1 ? `${busy()} left` : "Publish"}</button>
        </div>
        <Show when={!("wrong" in built())}>
          <AsCommand actions={(() => { const known = built(); return "action" in known ? [known.action] : []; })()} />
        </Show>
      </div>
      <aside class="publish-side">
        <h3>Templates</h3>
        <Kept list={templates()} load={load} drop={(nth) => setTemplates(templates().filter((_, at) => at !== nth))} empty="None yet." />
        <div class="inline tight">
          <input aria-label="Name of the template" placeholder="its name" value={template()} onInput={(event) => setTemplate(event.currentTarget.value)} />
          <Button
            disabled={template().trim() === ""}
            onClick={() => {
              setTemplates([...templates().filter((one) => one.name !== template().trim()), { ...structuredClone(unwrap(draft)), name: template().trim() }]);
              setTemplate("");
            }}
          >
            Keep
          </Button>
        </div>
        <h3>Published before</h3>
        <Kept list={past()} load={load} drop={(nth) => setPast(past().filter((_, at) => at !== nth))} empty="Nothing from this browser." />
      </aside>
    </form>
  );
}

function Kept(props: { list: Draft[]; load: (one: Draft) => void; drop: (nth: number) => void; empty: string }) {
  return (
    <Show when={props.list.length > 0} fallback={<p class="muted small">{props.empty}</p>}>
      <ul class="kept">
        <For each={props.list}>
          {(one, nth) => (
            <li>
              <button type="button" onClick={() => props.load(one)} title={one.payload.slice(0, 300)}>
                <b>{one.name ?? (one.routingKey || "(no key)")}</b>
                <small>{one.payload.slice(0, 60) || "empty"}</small>
              </button>
              <Button kind="quiet" class="x" aria-label={`Forget ${one.name ?? one.routingKey}`} onClick={() => props.drop(nth())}>✕</Button>
            </li>
          )}
        </For>
      </ul>
    </Show>
  );
}

