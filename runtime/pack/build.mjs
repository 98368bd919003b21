// The build step of `npm pack`: compiles the sources to JavaScript in `runtime/dist/`, folder by folder, since Node
// strips no types below `node_modules`, and copies the files that the program reads: migrations, profiles, contract,
// word vectors, the modules and styles of the pages. Nothing is bundled, so that a trace names the files and functions
// of the sources.
import { install, root } from "../bootstrap.mjs"
import { spawnSync } from "node:child_process"
import { cpSync, readdirSync, rmSync, statSync } from "node:fs"
import { join, relative, sep } from "node:path"
import process from "node:process"

const dist = join(root, "runtime", "dist")

/** Folders with files that the program reads in addition to its modules, and their extensions. */
const folders = ["migrations", "plugins", "kernel", join("runtime", "profiles")]
const isRead = /\.(sql|yaml|wasm|bin|css|svg|txt)$/
const page = join("plugins", "dashboard", "web") + sep

const filesIn = (folder) =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

const compile = () => {
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc")
  const { error, status } = spawnSync(process.execPath, [compiler, "-p", join(root, "runtime", "pack")], {
    stdio: ["ignore", 2, 2]
  })
  if (error !== undefined || status !== 0) throw new Error(`the sources were not compiled: ${error ?? status}`)
}

const copy = () => {
  for (const folder of folders) {
    for (const file of filesIn(join(root, folder))) {
      const path = relative(root, file)
      if (isRead.test(path) || path.startsWith(page)) cpSync(file, join(dist, path))
    }
  }
}

install(root, "what Tollkeeper needs")
rmSync(dist, { recursive: true, force: true })
compile()
copy()
const all = filesIn(dist)
const bytes = all.reduce((sum, file) => sum + statSync(file).size, 0)
// Standard output is npm's.
console.error(`runtime/dist: ${all.length} files, ${(bytes / 1_000_000).toFixed(1)} MB`)
