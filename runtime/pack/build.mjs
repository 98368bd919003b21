// The build step of `npm pack`: compiles the sources to JavaScript in `runtime/dist/`, folder by folder, since Node
// strips no types below `node_modules`, and copies the files that the program reads: migrations, profiles, contract,
// word vectors, the modules and styles of the pages. Nothing is bundled, so that a trace names the files and functions
// of the sources.
import { install, root } from "../bootstrap.mjs"
import { spawnSync } from "node:child_process"
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
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

const manifest = join(root, "package.json")
const original = join(root, "node_modules", ".cache", "tollkeeper", "package.json")

/** Puts back the manifest of the sources, also after a packing that was killed. */
const restore = () => {
  if (existsSync(original)) renameSync(original, manifest)
}

/** Files of `swagger-ui-dist` that the API page needs, and their licenses. */
const swagger = ["swagger-ui-bundle.js", "swagger-ui.css", "LICENSE", "NOTICE"]

/**
 * Keeps npm from running a dependency's install script when it installs the archive: it applies neither our overrides
 * nor `--ignore-scripts` there. The archive has the files of `swagger-ui-dist` instead of the package, because its
 * dependency reports each installation. It bundles `@opentelemetry/sdk-node` with `protobufjs`, to drop their script.
 */
const packWithoutScripts = () => {
  const read = (file) => JSON.parse(readFileSync(file, "utf8"))
  const write = (file, value) => writeFileSync(file, `${JSON.stringify(value, undefined, 2)}\n`)
  const modules = join(root, "node_modules")
  for (const file of swagger)
    cpSync(join(modules, "swagger-ui-dist", file), join(dist, "packages", "swagger-ui-dist", file))
  const protobuf = join(modules, "protobufjs", "package.json")
  write(protobuf, { ...read(protobuf), scripts: {} })
  const { "swagger-ui-dist": _, ...dependencies } = read(manifest).dependencies
  const packed = { ...read(manifest), dependencies, bundleDependencies: ["@opentelemetry/sdk-node"] }
  cpSync(manifest, original, { recursive: true })
  write(manifest, packed)
}

restore()
if (process.argv.includes("--restore")) process.exit()
install(root, "what Tollkeeper needs")
rmSync(dist, { recursive: true, force: true })
compile()
copy()
packWithoutScripts()
const all = filesIn(dist)
const bytes = all.reduce((sum, file) => sum + statSync(file).size, 0)
// Standard output is npm's.
console.error(`runtime/dist: ${all.length} files, ${(bytes / 1_000_000).toFixed(1)} MB`)
