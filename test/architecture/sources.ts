// The project's text files as the architecture tests read them: tracked or trackable by git, or without git all files.
// A TypeScript source is parsed once, with the tests' own parser. Rules are functions from a source to its violations,
// so that each rule can be tested on a source that breaks it.
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join, posix } from "node:path"
import { fileURLToPath } from "node:url"
import { parseSync } from "vite"

export const root = fileURLToPath(new URL("../..", import.meta.url))

const traverse = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name)
    if (["node_modules", ".git", ".tollkeeper", "dist"].includes(entry.name)) return []
    return entry.isDirectory() ? traverse(path) : [path]
  })

const listed = (): ReadonlyArray<string> => {
  try {
    const args = ["ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    return execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })
      .trimEnd()
      .split("\n")
  } catch {
    return traverse("")
  }
}

const readable = (path: string): boolean => {
  try {
    return readFileSync(join(root, path)).indexOf(0) === -1
  } catch {
    return false
  }
}

/** Paths of every text file, relative to the project with forward slashes. */
export const textFiles: ReadonlyArray<string> = listed().filter(readable)

export const readText = (path: string): string => readFileSync(join(root, path), "utf8")

export interface Node {
  readonly type: string
  readonly start: number
  readonly [key: string]: unknown
}

export interface Source {
  readonly path: string
  readonly text: string
  readonly program: Node
  /** Every module that is imported or re-exported, types included. */
  readonly imports: ReadonlyArray<string>
  readonly lines: number
}

export const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string"

/** Calls `visit` for `node` and each of its descendants, with the parent and the key below it. */
export const eachNode = (node: Node, visit: (node: Node, parent: Node | undefined, key: string) => void): void => {
  const go = (node: Node, parent: Node | undefined, key: string) => {
    visit(node, parent, key)
    for (const [name, value] of Object.entries(node)) {
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) go(child, node, name)
    }
  }
  go(node, undefined, "")
}

/** The line of a position, counted from 1. */
export const lineAt = (source: Source, position: number): number => source.text.slice(0, position).split("\n").length

export const parseSource = (path: string, text: string): Source => {
  const parsed = parseSync(path, text)
  if (parsed.errors.length > 0) throw new Error(`${path}: ${parsed.errors[0]?.message}`)
  const program = parsed.program as unknown as Node
  const imports: Array<string> = []
  eachNode(program, (node) => {
    const from = node["source"]
    if (/^(Import|ExportNamed|ExportAll)(Declaration|Expression)$/.test(node.type) && isNode(from))
      imports.push(String(from["value"]))
    if (node.type === "TSImportType" && isNode(node["source"])) imports.push(String(node["source"]["value"]))
  })
  return { path, text, program, imports: [...new Set(imports)], lines: text.trimEnd().split("\n").length }
}

/** Every TypeScript and JavaScript source of ours. */
export const sources: ReadonlyArray<Source> = textFiles
  .filter((path) => /\.(ts|mts|mjs|js)$/.test(path))
  .map((path) => parseSource(path, readText(path)))

/** The sources below one of the folders. */
export const sourcesIn = (...folders: ReadonlyArray<string>): ReadonlyArray<Source> =>
  sources.filter(({ path }) => folders.some((folder) => path.startsWith(`${folder}/`)))

/** True if a source is a page's module: it runs in a browser, and not on our runtimes. */
export const isPage = (path: string): boolean => path.startsWith("plugins/dashboard/web/")
