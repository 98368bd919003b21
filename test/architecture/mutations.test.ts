// Checks that every mutation still matches its source: moved or rewritten code fails here, not only when the list runs.
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { parseSource } from "./sources.ts"
import { listNames, occurrencesOf, readList, withChange } from "../mutation/Mutation.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const texts = new Map<string, string>()
const textOf = (file: string): string => {
  const text = texts.get(file) ?? readFileSync(join(root, file), "utf8")
  texts.set(file, text)
  return text
}

/** A source that cannot be read is caught by anything, and says nothing about the defect. */
const syntaxIssue = (name: string, file: string, text: string): ReadonlyArray<string> => {
  try {
    parseSource(file, text)
    return []
  } catch (error) {
    return [`${name}: ${String(error)}`]
  }
}

describe.each(listNames)("the list %s", (name) => {
  it("names places that occur exactly once, and leaves sources that parse", async () => {
    const issues: Array<string> = []
    for (const mutation of await readList(name)) {
      const changed = new Map<string, string>()
      for (const change of mutation.changes) {
        const before = changed.get(change.file) ?? textOf(change.file)
        const after = withChange(change, before)
        if (after === undefined)
          issues.push(`${mutation.name}: ${occurrencesOf(change, before)} × in ${change.file}: ${change.from}`)
        else if (after === before) issues.push(`${mutation.name}: changes nothing in ${change.file}`)
        changed.set(change.file, after ?? before)
      }
      for (const [file, text] of changed)
        if (file.endsWith(".ts")) issues.push(...syntaxIssue(mutation.name, file, text))
    }
    expect(issues).toEqual([])
  })

  it("gives every defect a unique name and an existing catcher", async () => {
    const mutations = await readList(name)
    const names = mutations.map((mutation) => mutation.name)
    expect(names.filter((one, index) => names.indexOf(one) !== index)).toEqual([])
    const files = mutations.flatMap(({ catcher }) => catcher.filter((word) => /^(test|plugins)\/.*\.ts$/.test(word)))
    expect([...new Set(files)].filter((file) => !existsSync(join(root, file)))).toEqual([])
  })
})

describe("a change", () => {
  const change = { file: "x.ts", from: "if (a)\n  return b", to: "if (c) return b" }

  it("is found regardless of white space, and leaves the rest unchanged", () => {
    expect(withChange(change, "let a = 1\nif (a) return b\nlet c")).toBe("let a = 1\nif (c) return b\nlet c")
    expect(withChange(change, "if (\n  a\n) return b")).toBe("if (c) return b")
  })

  it("is not made where its place is missing or there twice", () => {
    expect(withChange(change, "if (d) return b")).toBeUndefined()
    expect(withChange(change, "if (a) return b; if (a) return b")).toBeUndefined()
  })
})
