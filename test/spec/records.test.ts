// A number in a comment leads to a text that a reader can open: `S84` to a line of `requirements.md`, `rules 3` to a
// record in `kernel/decisions/`.
import { describe, expect, it } from "vitest"
import { readText, textFiles } from "../architecture/sources.ts"
import { requirements, sections } from "./sections.ts"

const lines = readText("test/spec/requirements.md").split("\n")
const numbered = lines.flatMap((line) => /^- \*\*S(\d+)\*\* \S/.exec(line)?.[1] ?? []).map(Number)

const rules = new Set(
  [...readText("kernel/decisions/rules.md").matchAll(/^## (\d+)\. /gm)].map(([, number]) => Number(number))
)
const records = textFiles.filter((path) => /^kernel\/decisions\/\d{4}-[a-z0-9-]+\.md$/.test(path))

/** Files with citations in our own text: sources, statements and documents; `npm run spec` counts names of tests. */
const citing = textFiles.filter(
  (path) =>
    /\.(ts|mjs|sql|md|ya?ml)$/.test(path) && !path.startsWith("test/spec/") && !path.startsWith("test/official/")
)

/** The numbers after a word, with lists and ranges: `rules 2 and 3`, `S12, S14–S16`. */
const numbersAfter = (text: string, pattern: RegExp): ReadonlyArray<number> =>
  [...text.matchAll(pattern)].flatMap(([found]) => [...found.matchAll(/\d+/g)].map(Number))

const rulesIn = (text: string) => numbersAfter(text, /\b(?:rules?|decisions?) \d+(?:\.\d+)?(?:(?:, | and |–)\d+)*/g)
const requirementsIn = (text: string) => numbersAfter(text, /(?<![\w#-])S\d{1,3}(?![\w.-])/g)

describe("the requirements", () => {
  it("have one line each, in order", () => {
    expect(numbered).toEqual(Array.from({ length: requirements }, (_, index) => index + 1))
  })

  it("are below the titles of their sections", () => {
    const titles = lines.flatMap((line) => /^## (.+)$/.exec(line)?.[1] ?? [])
    expect(titles.length).toBe(sections.length)
  })
})

describe("the records of decisions", () => {
  it("have their parts, and each is in the index", () => {
    const index = readText("kernel/decisions/README.md")
    expect(records.length).toBeGreaterThan(30)
    for (const path of records) {
      expect(readText(path)).toMatch(
        /^# \d+\. .+\n\nStatus: [^]+\n## Context\n[^]+\n## Decision\n[^]+\n## Alternatives\n[^]+\n## Consequences\n/
      )
      expect(index).toContain(`](${path.split("/").at(-1)})`)
    }
  })
})

describe("citations in our text", () => {
  it("are read as they are written", () => {
    expect(rulesIn("as decided (rules 2 and 3), not rule 14")).toEqual([2, 3, 14])
    expect(requirementsIn("one answer (S84, S85–S86), not an ES2022 or S3-bucket")).toEqual([84, 85, 86])
  })

  it("of rules lead to a section", () => {
    const cited = citing.flatMap((path) => rulesIn(readText(path)).map((number) => ({ path, number })))
    expect(cited.length).toBeGreaterThan(10)
    expect(cited.filter(({ number }) => !rules.has(number))).toEqual([])
  })

  it("of requirements lead to a line", () => {
    const cited = citing.flatMap((path) => requirementsIn(readText(path)).map((number) => ({ path, number })))
    expect(cited.length).toBeGreaterThan(100)
    expect(cited.filter(({ number }) => !numbered.includes(number))).toEqual([])
  })

  it("name no paper that is not here", () => {
    expect(citing.filter((path) => /\b(decisions|house|seed|checklist)\.md\b/.test(readText(path)))).toEqual([])
  })
})
