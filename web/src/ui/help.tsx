// `?`: what the keys do.
import { For } from "solid-js";
import { KEYS, PLACES } from "../lib/keys";
import { Dialog } from "./dialog";

export function Help(props: { open: boolean; close: () => void }) {
  return (
    <Dialog title="Keys" open={props.open} close={props.close} wide>
      <div class="dialog-body help">
        <dl>
          <For each={KEYS}>
            {(key) => (
              <div>
                <dt>
                  <kbd>{key.keys}</kbd>
                </dt>
                <dd>{key.does}</dd>
              </div>
            )}
          </For>
        </dl>
        <dl>
          <For each={Object.entries(PLACES)}>
            {([key, [, text]]) => (
              <div>
                <dt>
                  <kbd>g {key}</kbd>
                </dt>
                <dd>{text}</dd>
              </div>
            )}
          </For>
        </dl>
        <p class="muted">
          Every view has an address that can be shared. Every action shows the command that does the same; the
          <a class="link" href="./api/index.html">HTTP API</a> has a page of its own. Numbers and times show their exact value when the
          pointer rests on them.
        </p>
      </div>
    </Dialog>
  );
}
