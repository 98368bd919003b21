// `npm start` on any checkout: needs git, npm and Node 20, and installs the rest. It then becomes `tollkeeper start` of
// the local profile; arguments are passed on, and a `--profile` argument overrides it.
import { becomeOwn, findNode, install, refuseOldNode, root } from "./bootstrap.mjs"
import { join } from "node:path"
import process from "node:process"
import { environmentOf } from "./system.mjs"

refuseOldNode()
install(root, "what Tollkeeper needs")
const args = process.argv.slice(2)
const profile = args.some((arg) => arg === "--profile" || arg.startsWith("--profile=")) ? [] : ["--profile", "local"]
becomeOwn(
  findNode(),
  ["--disable-warning=ExperimentalWarning", join(root, "runtime", "cli.mjs"), "start", ...profile, ...args],
  environmentOf("start", process.env, process.platform)
)
