#!/usr/bin/env node
// The `tollkeeper` command as npm installs it: `npx tollkeeper start` in any folder. In the package it runs the
// JavaScript of `runtime/dist/`, since Node strips no types below `node_modules`; in a checkout always the sources,
// never an earlier build.
import { becomeOwn, findNode, refuseOldNode, root } from "./bootstrap.mjs"
import { existsSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { environmentOf } from "./system.mjs"

refuseOldNode()
const source = join(root, "runtime", "cli.mjs")
const program = existsSync(source) ? source : join(root, "runtime", "dist", "runtime", "cli.mjs")
const [command, ...words] =
  "Deno" in globalThis ? [process.execPath, "run", "-A"] : [findNode(), "--disable-warning=ExperimentalWarning"]
becomeOwn(
  command,
  [...words, program, ...process.argv.slice(2)],
  environmentOf(process.argv[2], process.env, process.platform)
)
