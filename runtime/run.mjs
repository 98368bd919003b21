// `npm run pay` and `npm run tollkeeper` on any checkout, as `start.mjs` is for `npm start`: installs missing packages,
// finds a Node that runs TypeScript, and becomes the program in the first argument, relative to the project.
import { become, becomeOwn, findNode, install, refuseOldNode, root } from "./bootstrap.mjs"
import { join } from "node:path"
import process from "node:process"
import { environmentOf } from "./system.mjs"

refuseOldNode()
install(root, "what Tollkeeper needs")
const [program = "", ...args] = process.argv.slice(2)
const words = ["--disable-warning=ExperimentalWarning", join(root, program), ...args]
if (program === "runtime/cli.mjs") becomeOwn(findNode(), words, environmentOf(args[0], process.env, process.platform))
else become(findNode(), words, { cwd: process.cwd() })
