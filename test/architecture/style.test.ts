// Style rules that can be checked: names of files and folders, a head of prose, named exports, no barrels, a maximum
// length, and only syntax that type stripping supports.
import { basename, dirname } from "node:path"
import { describe, expect, it } from "vitest"
import { isNode, parseSource, type Source, sources, sourcesIn, textFiles } from "./sources.ts"

/** Lines of a formatted product source; the style guide questions 300. */
const linesMax = 390
const longFiles: Readonly<Record<string, number>> = {
  // Generated.
  "examples/client/types.ts": 3_180
}

const bodyOf = (source: Source) => (source.program["body"] as ReadonlyArray<unknown>).filter(isNode)

/** A tool reads its configuration from a default export, and that is the only reason for one. */
const isConfiguration = (path: string) => /\.config\.ts$/.test(path)

const styleIssues = (source: Source): ReadonlyArray<string> => {
  const body = bodyOf(source)
  const issues: Array<string> = []
  const name = basename(source.path)
  if (
    !/^([A-Za-z][A-Za-z0-9]*)((\.slow|\.daily)?\.test|\.config)?\.(ts|mjs)$/.test(name) &&
    !source.path.startsWith("examples/") &&
    !source.path.startsWith("test/bench/")
  ) {
    issues.push("a source is named in PascalCase or camelCase")
  }
  if (!/^([a-z][a-z0-9-]*\/)*$/.test(source.path.slice(0, -name.length)) && !source.path.startsWith("test/")) {
    issues.push("a folder is named in kebab-case")
  }
  const isTest = /\.test\.ts$/.test(name)
  const head = /^(?:#!.*\n)?((?:\/\/.*\n)+)/.exec(source.text)?.[1] ?? ""
  if (!isTest && !/[.:]\s*\n?$/m.test(head)) issues.push("a source opens with sentences that say what it is")
  if (body.some(({ type }) => type === "ExportDefaultDeclaration") && !isConfiguration(source.path))
    issues.push("a default export")
  if (body.some(({ type }) => type === "ExportAllDeclaration")) issues.push("export * hides what is exported")
  if (body.length > 0 && body.every((node) => node.type.startsWith("Export") && isNode(node["source"])))
    issues.push("a barrel")
  const most = longFiles[source.path] ?? linesMax
  if (!source.path.startsWith("test/") && source.lines > most) issues.push(`${source.lines} lines, more than ${most}`)
  return issues.map((issue) => `${source.path}: ${issue}`)
}

describe("the style of the sources", () => {
  it("follow the rules for names, heads, exports and lengths", () => {
    expect(sources.filter(({ path }) => !path.startsWith("test/official/")).flatMap(styleIssues)).toEqual([])
  })

  it("keeps the product's median file between 60 and 120 lines", () => {
    const lengths = sourcesIn("kernel", "plugins", "runtime")
      .map(({ lines }) => lines)
      .sort((a, b) => a - b)
    expect(lengths[Math.floor(lengths.length / 2)]).toBeLessThanOrEqual(120)
    expect(lengths.filter((lines) => lines > 300).length).toBeLessThanOrEqual(lengths.length / 10)
  })

  it.each([
    ["kernel/my_file.ts", "// A head.\nexport const x = 1"],
    ["kernel/Bad_Folder/File.ts", "// A head.\nexport const x = 1"],
    ["kernel/File.ts", "export const x = 1"],
    ["kernel/File.ts", "// A head.\nexport default 1"],
    ["kernel/File.ts", '// A head.\nimport { b } from "./a.ts"\nexport * from "./a.ts"\nexport const c = b'],
    ["kernel/File.ts", '// A head.\nexport { b } from "./a.ts"\nexport { c } from "./c.ts"'],
    ["kernel/File.ts", `// A head.\n${"export {}\n".repeat(linesMax)}`]
  ])("reports a violation in %s", (path, text) => {
    expect(styleIssues(parseSource(path, text)).length).toBeGreaterThan(0)
  })
})

describe("the tree", () => {
  it("has the folders of the specification and no others at its top [S337]", () => {
    const folders = new Set(textFiles.filter((path) => path.includes("/")).map((path) => path.split("/")[0]))
    const named = ["examples", "kernel", "migrations", "plugins", "runtime", "test"]
    expect([...folders].filter((folder) => folder?.startsWith(".") !== true).sort()).toEqual(named)
  })

  it("has one source tree with the files of both runtimes [S336]", () => {
    const top = textFiles.filter((path) => dirname(path) === ".")
    expect(top).toEqual(expect.arrayContaining(["package.json", "deno.json", "tsconfig.json"]))
    expect(sources.filter(({ path }) => !/\.(ts|mjs)$/.test(path))).toEqual([])
  })

  it("numbers each owner's migrations without a gap [S311]", () => {
    const owners = Map.groupBy(
      textFiles.filter((path) => /^migrations\/[a-z0-9-]+\/.*\.sql$/.test(path)),
      (path) => dirname(path)
    )
    for (const [owner, files] of owners) {
      const expected = files.map((_, index) => `${owner}/${String(index + 1).padStart(4, "0")}_`)
      expect(files.toSorted().map((file) => /^.*\/\d{4}_/.exec(file)?.[0])).toEqual(expected)
    }
  })
})
