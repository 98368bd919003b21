// Forbidden in every file of the project: a path of a developer's machine, the address of a package registry, a secret
// key, a merge conflict marker.
import { describe, expect, it } from "vitest"
import { readText, textFiles } from "./sources.ts"

const forbidden: ReadonlyArray<readonly [what: string, pattern: RegExp]> = [
  ["a path of a developer's machine", /(?<![\w.:/$}])\/(?:home|Users|work|root)\/[A-Za-z0-9._-]+/],
  ["the address of a package registry", /registry\.(?:npmjs|yarnpkg|npmmirror)\.[a-z]+|"resolved":\s*"https?:/],
  ["a private key", /-----BEGIN [A-Z ]*PRIVATE KEY-----\n[A-Za-z0-9+/]/],
  ["an unfinished merge", /^(?:<{7}|>{7}) /m]
]

const textIssues = (path: string, text: string): ReadonlyArray<string> =>
  forbidden.flatMap(([what, pattern]) => {
    const found = pattern.exec(text)
    return found === null ? [] : [`${path}: ${what}: ${found[0].slice(0, 80)}`]
  })

describe("the text of every file", () => {
  it("names no machine, no registry and no secret", () => {
    const own = "test/architecture/text.test.ts"
    expect(textFiles.filter((path) => path !== own).flatMap((path) => textIssues(path, readText(path)))).toEqual([])
  })

  it("ends with a line break, without carriage returns, tabs or trailing spaces", () => {
    const odd = textFiles.filter((path) => {
      const text = readText(path)
      return (
        text.length > 0 &&
        (!text.endsWith("\n") || text.includes("\r") || (/\.(ts|mjs|md|yaml|sql)$/.test(path) && /[ \t]$/m.test(text)))
      )
    })
    expect(odd).toEqual([])
  })

  it("says what is required in the field's words", () => {
    const odd =
      /\b(?:is|are) wanted\b|\bwants? (?:a|an|one|the) (?:key|signer|time|method|code)|has a word in it|\bis weather\b/
    const files = textFiles.filter((path) => /^(?:kernel|plugins|runtime|examples|README)/.test(path))
    expect(files.filter((path) => odd.test(readText(path)))).toEqual([])
  })

  it.each([
    "cd /home/anna/x",
    "see /work/main",
    "https://registry.npmjs.org/x",
    "-----BEGIN PRIVATE KEY-----\nMIIE",
    "\n<<<<<<< HEAD\n"
  ])("would catch %j", (text) => {
    expect(textIssues("x.md", text)).toHaveLength(1)
  })
})
