// `npm run pay` and `npm run tollkeeper` on any checkout, as `start.mjs` is for `npm start`: installs what is missing,
// finds a Node that runs TypeScript, and becomes the program that the first argument names, relative to the project.
import { become, environmentOf, findNode, install, refuseOldNode, root } from "./bootstrap.mjs"
import { join } from "node:path"
import process from "node:process"

refuseOldNode()
install(root, "what Tollkeeper needs")
const [program = "", ...args] = process.argv.slice(2)
become(findNode(), ["--disable-warning=ExperimentalWarning", join(root, program), ...args], {
  cwd: process.cwd(),
  env: environmentOf(args[0])
})
