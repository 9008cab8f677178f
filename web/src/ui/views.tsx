// Views of a list by name: filter, order and columns. They are kept here; their addresses can be sent to others.
import { createSignal, For, Show } from "solid-js";
import { place } from "../lib/route";
import { stored } from "../lib/store";
import { Button } from "./bits";
import { Dialog } from "./dialog";
import { Text } from "./fields";

export function Views(props: { name: string }) {
  const [views, setViews] = stored<Record<string, string>>(`views.${props.name}`, {});
  const [naming, setNaming] = createSignal(false);
  const [name, setName] = createSignal("");
  const keep = (event: Event) => {
    event.preventDefault();
    if (name().trim() === "") return;
    place();
    setViews({ ...views(), [name().trim()]: location.hash });
    setNaming(false);
    setName("");
  };
  const drop = (which: string) => {
    const { [which]: _, ...others } = views();
    setViews(others);
  };
  return (
    <>
      <details class="menu">
        <summary class="button plain">Views</summary>
        <div class="menu-body">
          <Show when={Object.keys(views()).length === 0}>
            <p class="muted">A view keeps the search, the order and the columns as they are now.</p>
          </Show>
          <For each={Object.entries(views())}>
            {([which, address]) => (
              <div class="menu-row">
                <a href={address}>{which}</a>
                <Button kind="quiet" class="x" aria-label={`Forget the view ${which}`} onClick={() => drop(which)}>
                  ✕
                </Button>
              </div>
            )}
          </For>
          <Button kind="quiet" onClick={() => setNaming(true)}>
            Keep this view…
          </Button>
        </div>
      </details>
      <Dialog title="Keep this view" open={naming()} close={() => setNaming(false)}>
        <form onSubmit={keep} class="do">
          <div class="dialog-body">
            <Text label="Its name" value={name()} set={setName} autofocus />
          </div>
          <footer>
            <Button onClick={() => setNaming(false)}>Cancel</Button>
            <button type="submit" class="button main">
              Keep
            </button>
          </footer>
        </form>
      </Dialog>
    </>
  );
}
