// Where Deno is, for the runs that start it.
import { existsSync } from "node:fs"
import { join } from "node:path"
import { root } from "../../runtime/bootstrap.mjs"

const installed = join(root, "test", "tools", "node_modules", "@deno", "linux-x64-glibc", "deno")

/** Deno from the tools, otherwise the machine's own. */
export const denoProgram = existsSync(installed) ? installed : "deno"
