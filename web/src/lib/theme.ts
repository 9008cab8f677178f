// Light, dark, or as the system has it.
import { createEffect, createSignal } from "solid-js";
import { stored } from "./store";

export type Theme = "system" | "light" | "dark";

const [theme, setTheme] = stored<Theme>("theme", "system");
export { setTheme, theme };

const system = matchMedia("(prefers-color-scheme: dark)");
const [systemDark, setSystemDark] = createSignal(system.matches);
system.addEventListener("change", () => setSystemDark(system.matches));

export const isDark = (): boolean => (theme() === "system" ? systemDark() : theme() === "dark");

export function applyTheme(): void {
  createEffect(() => {
    document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  });
}

/** A colour of the style sheet as it is now. */
export function colour(name: string): string {
  isDark();
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
