// `npm test`, `npm run check` and `npm run test:full` on any checkout: needs npm and Node 20, and installs the rest,
// the tools of `test/tools` included. The argument names the plan; `test/run/runPlan.ts` does the work, on a Node that
// runs TypeScript.
import { become, findNode, install, refuseOldNode, root } from "../runtime/bootstrap.mjs"
import { join } from "node:path"
import process from "node:process"

refuseOldNode()
install(root, "what Tollkeeper needs")
install(join(root, "test", "tools"), "the linters and Deno", { lenient: true })
become(
  findNode(),
  ["--disable-warning=ExperimentalWarning", join(root, "test", "run", "runPlan.ts"), ...process.argv.slice(2)],
  { cwd: root }
)
