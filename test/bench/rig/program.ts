// The project's own program, and how this Node runs it.
import { existsSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** The folder of the project. */
export const root = fileURLToPath(new URL("../../..", import.meta.url))

/** Node's arguments before those of `tollkeeper`, in the project's folder. */
export const programArgs: ReadonlyArray<string> = ["--disable-warning=ExperimentalWarning", "runtime/cli.mjs"]

/** The same for Deno. */
export const denoArgs: ReadonlyArray<string> = ["run", "-A", "--quiet", "runtime/cli.ts"]

/** Deno as the tests install it, otherwise the one on the path. */
export const denoProgram = (): string => {
  const installed = join(root, "test", "tools", "node_modules", "@deno", "linux-x64-glibc", "deno")
  return existsSync(installed) ? installed : "deno"
}
