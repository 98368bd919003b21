// Checks the types, and with them what Effect's own checker tells only by types: it stands in the compiler that its
// package brings. What was found of each file is kept beside the packages, so that a second run looks only at what
// depends on a change; a record that is missing or spoilt only costs the time.
import { become, root } from "../../runtime/bootstrap.mjs"
import { execFileSync } from "node:child_process"
import { join } from "node:path"

const tool = join(root, "test", "tools", "node_modules", ".bin", "effect-tsgo")
const compiler = execFileSync(tool, ["get-exe-path"], { encoding: "utf8" }).trim()
const record = join(root, "node_modules", ".cache", "tollkeeper", "types.tsbuildinfo")
become(compiler, ["--noEmit", "--incremental", "--tsBuildInfoFile", record], { cwd: root })
