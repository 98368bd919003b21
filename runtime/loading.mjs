// Node's module hooks for this program; Deno does not need them. The sources are TypeScript. Their JavaScript is cached
// next to the packages, which belong to the user that installed them, so that a process never keeps Node's type
// compiler (30 MB) for its lifetime; a source that differs from its cached one is compiled again. A file loads only the
// modules of `effect` that it names, not the whole package. Plain JavaScript, because it runs before any TypeScript.
// Run directly it compiles everything (`node runtime/loading.mjs`), for an image whose user cannot write there.
import { spawnSync } from "node:child_process"
import { hash } from "node:crypto"
import {
  accessSync,
  constants,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  writeFileSync
} from "node:fs"
import * as modules from "node:module"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"

const own = new URL("../", import.meta.url).href
const folders = ["kernel", "plugins", "runtime"]

/** The names that our own files import from each index of the package; a test checks it. */
export const parts = {
  effect: [
    ...[
      "Cause",
      "Clock",
      "ConfigProvider",
      "Console",
      "Context",
      "Data",
      "DateTime",
      "Deferred",
      "Duration",
      "Effect",
      "Exit",
      "Fiber"
    ],
    ...[
      "FiberSet",
      "FileSystem",
      "Latch",
      "Layer",
      "Logger",
      "Metric",
      "Option",
      "Path",
      "Predicate",
      "Queue",
      "Random"
    ],
    ...[
      "Redacted",
      "Ref",
      "References",
      "Result",
      "Schedule",
      "Schema",
      "SchemaAST",
      "SchemaGetter",
      "SchemaIssue",
      "Scope"
    ],
    ...["Semaphore", "Stream", "Tracer"]
  ],
  "effect/encoding": ["Base64", "Base64Url", "Hex"],
  "effect/http": [
    ...["FetchHttpClient", "FindMyWay"],
    ...["Etag", "Headers", "HttpClient", "HttpClientRequest", "HttpMiddleware", "HttpRouter", "HttpServer"],
    ...["HttpServerError", "HttpServerRequest", "HttpServerResponse", "HttpTraceContext"]
  ],
  "effect/observability": ["PrometheusMetrics"],
  "effect/reactivity": ["Reactivity"],
  "effect/sql": ["SqlClient", "SqlError", "Statement"]
}

/** Replaces an index: a module without a file, in our folder, so that it resolves the same packages. */
const partsOf = (specifier) => `${own}runtime/parts-of/${specifier}.js`
const texts = new Map(
  Object.entries(parts).map(([specifier, names]) => [
    partsOf(specifier),
    names.map((name) => `export * as ${name} from "${specifier}/${name}"\n`).join("")
  ])
)

const isOwn = (url) =>
  url !== undefined && url.startsWith(own) && folders.includes(url.slice(own.length).split("/", 1)[0])

const kept = fileURLToPath(
  new URL(`../node_modules/.cache/tollkeeper/types-${process.versions.node}/`, import.meta.url)
)

/** Path of a source's cached JavaScript; its last line is the hash of that source. */
const placeOf = (url) => join(kept, `${hash("sha256", url.slice(own.length)).slice(0, 32)}.js`)
const endOf = (source) => `\n//${hash("sha256", source)}`

const keptOf = (url, source) => {
  try {
    const text = readFileSync(placeOf(url), "utf8")
    return text.endsWith(endOf(source)) ? text : undefined
  } catch {
    return undefined
  }
}

const withoutTypes = (source) => modules.stripTypeScriptTypes(source)

/** Writes a temporary file and renames it, because another process may be writing the same file. */
const keep = (url, source) => {
  const place = placeOf(url)
  const beside = `${place}.${process.pid}`
  writeFileSync(beside, withoutTypes(source) + endOf(source))
  renameSync(beside, place)
}

const compileAll = () => {
  mkdirSync(kept, { recursive: true })
  for (const folder of folders) {
    for (const name of readdirSync(new URL(folder, own), { recursive: true })) {
      if (!name.endsWith(".ts") || name.endsWith(".d.ts")) continue
      const url = `${own}${folder}/${name}`
      const source = readFileSync(fileURLToPath(url), "utf8")
      if (keptOf(url, source) === undefined) keep(url, source)
    }
  }
}

const isWritable = () => {
  try {
    mkdirSync(kept, { recursive: true })
    accessSync(kept, constants.W_OK)
    return true
  } catch {
    return false
  }
}

let hasCompiled = false
/** Once, and in a separate process, so that the type compiler's memory ends with it. */
const compileBeside = () => {
  if (hasCompiled) return
  hasCompiled = true
  if (!isWritable()) return
  const words = ["--disable-warning=ExperimentalWarning", fileURLToPath(import.meta.url)]
  spawnSync(process.execPath, words, { stdio: "ignore" })
}

const textOf = (url) => {
  const source = readFileSync(fileURLToPath(url), "utf8")
  const known = keptOf(url, source)
  if (known !== undefined) return known
  compileBeside()
  return keptOf(url, source) ?? withoutTypes(source)
}

const isRun = () => {
  try {
    return realpathSync(process.argv[1] ?? "") === fileURLToPath(import.meta.url)
  } catch {
    return false
  }
}

/** Installs the module hooks in this thread. */
export const loadLean = () => {
  if ("Deno" in globalThis || modules.registerHooks === undefined) return
  modules.registerHooks({
    resolve: (specifier, context, next) =>
      Object.hasOwn(parts, specifier) && isOwn(context.parentURL)
        ? { url: partsOf(specifier), format: "module", shortCircuit: true }
        : next(specifier, context),
    load: (url, context, next) => {
      const source = texts.get(url) ?? (url.endsWith(".ts") && isOwn(url) ? textOf(url) : undefined)
      return source === undefined ? next(url, context) : { source, format: "module", shortCircuit: true }
    }
  })
}

if (isRun()) compileAll()
