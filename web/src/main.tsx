// The page of the broker: everything that it does goes over the HTTP API.
import { createEffect, Match, onMount, Show, Switch } from "solid-js";
import { render } from "solid-js/web";
import { restore, restoring, user } from "./lib/session";
import { applyTheme } from "./lib/theme";
import { Login } from "./pages/login";
import { Shell } from "./ui/shell";
import "./style/base.css";
import "./style/layout.css";
import "./style/parts.css";

function App() {
  applyTheme();
  onMount(restore);
  createEffect(() => document.body.classList.toggle("in", user() !== undefined));
  return (
    <Show when={!restoring()}>
      <Switch fallback={<Login />}>
        <Match when={user()?.name}>
          <Shell />
        </Match>
      </Switch>
    </Show>
  );
}

render(() => <App />, document.getElementById("page")!);
