// `npm run lint` and `npm run format` on any checkout: installs the tools of `test/tools` if they are missing, and then
// becomes the tool named by the first argument.
import { become, install, refuseOldNode, root } from "../runtime/bootstrap.mjs"
import { join } from "node:path"
import process from "node:process"

refuseOldNode()
const tools = join(root, "test", "tools")
install(tools, "the linter and the formatter", { lenient: true })
const [name = "", ...args] = process.argv.slice(2)
become(join(tools, "node_modules", ".bin", name), args, { cwd: root })
