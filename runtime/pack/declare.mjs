// The `prepack` step of the packages in `examples/`: declares the types of each exported module in `dist/`, from the
// comments of the sources, and adds the license.
import { spawnSync } from "node:child_process"
import { cpSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { root } from "../bootstrap.mjs"

const { exports } = JSON.parse(readFileSync("package.json", "utf8"))
const compiler = join(root, "node_modules", "typescript", "bin", "tsc")
const form = [
  "--declaration",
  "--emitDeclarationOnly",
  "--module",
  "nodenext",
  "--target",
  "es2024",
  "--outDir",
  "dist"
]
const given = ["--ignoreConfig", "--allowJs", "--allowImportingTsExtensions", "--skipLibCheck", "--types", "node"]
const strict = ["--strict", "--exactOptionalPropertyTypes"]
const modules = Object.values(exports).map((one) => one.default)

rmSync("dist", { recursive: true, force: true })
// Standard output is npm's.
const { status } = spawnSync(process.execPath, [compiler, ...modules, ...form, ...given, ...strict], {
  stdio: ["ignore", 2, 2]
})
if (status !== 0) throw new Error(`the types were not declared: ${status}`)
cpSync(join(root, "LICENSE"), join("dist", "LICENSE"))
