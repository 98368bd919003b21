// Checks the types, and with them the rules of Effect's own checker, which is built into the compiler that its package
// brings. The result for each file is kept beside the packages, so that a second run checks only what depends on a
// change; a missing or corrupt record only costs the time.
import { become, root } from "../../runtime/bootstrap.mjs"
import { execFileSync } from "node:child_process"
import { join } from "node:path"

const tool = join(root, "test", "tools", "node_modules", ".bin", "effect-tsgo")
const compiler = execFileSync(tool, ["get-exe-path"], { encoding: "utf8" }).trim()
const record = join(root, "node_modules", ".cache", "tollkeeper", "types.tsbuildinfo")
become(compiler, ["--noEmit", "--incremental", "--tsBuildInfoFile", record], { cwd: root })
