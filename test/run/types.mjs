// Checks the types, together with the rules of Effect's own checker, which is built into its package's compiler. The
// result for each file is cached next to the packages, so that a second run only checks files that depend on a change;
// a missing or corrupt cache only costs time.
import { become, root } from "../../runtime/bootstrap.mjs"
import { execFileSync } from "node:child_process"
import { join } from "node:path"

const tool = join(root, "test", "tools", "node_modules", ".bin", "effect-tsgo")
const compiler = execFileSync(tool, ["get-exe-path"], { encoding: "utf8" }).trim()
const record = join(root, "node_modules", ".cache", "tollkeeper", "types.tsbuildinfo")
become(compiler, ["--noEmit", "--incremental", "--tsBuildInfoFile", record], { cwd: root })
