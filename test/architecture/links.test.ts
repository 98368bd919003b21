// Links in the project's pages: a link's file and section exist, and so does each file in a README's table. Renaming a
// file thus requires updating the text about it.
import { existsSync } from "node:fs"
import { join, posix } from "node:path"
import { describe, expect, it } from "vitest"
import { readText, root, textFiles } from "./sources.ts"

/** A page without its blocks of code. */
const prose = (text: string): string => text.replace(/^```[^]*?^```$/gm, "")

/** The name that a heading is linked by. */
const slugOf = (heading: string): string =>
  heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_\- ]/gu, "")
    .trim()
    .replaceAll(" ", "-")

const sectionsOf = (text: string): ReadonlyArray<string> =>
  [...prose(text).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => slugOf(heading!))

const linkIssues = (
  path: string,
  text: string,
  { has, read }: { has: (path: string) => boolean; read: (path: string) => string }
): ReadonlyArray<string> =>
  [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link]) => {
    if (/^(?:https?|mailto):/.test(link!)) return []
    const [file = "", section = ""] = link!.split("#")
    const target = file === "" ? path : posix.join(posix.dirname(path), file).replace(/\/$/, "")
    if (!has(target)) return [`${path}: ${link}: no such file`]
    if (section === "" || !target.endsWith(".md")) return []
    return sectionsOf(file === "" ? text : read(target)).includes(section) ? [] : [`${path}: ${link}: no such section`]
  })

/** Files in the first cells of a README's tables that are missing below its folder. */
const tableIssues = (path: string, text: string, has: (path: string) => boolean): ReadonlyArray<string> =>
  [...prose(text).matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell]) =>
    [...cell!.matchAll(/`([\w/-]+\.(?:ts|mjs|sql|bin))`/g)].flatMap(([, named]) => {
      const file = named!
      const folder = posix.dirname(/`([\w/-]+\.\w+)`/.exec(cell!)?.[1] ?? "")
      const places = [posix.dirname(path), posix.join(posix.dirname(path), folder), "."]
      return places.some((place) => has(posix.join(place, file))) ? [] : [`${path}: ${file}: no such file`]
    })
  )

const has = (path: string): boolean => existsSync(join(root, path))

const pages = textFiles.filter((path) => path.endsWith(".md"))

describe("pages", () => {
  it("link to files and sections that are there", () => {
    expect(pages.flatMap((path) => linkIssues(path, readText(path), { has, read: readText }))).toEqual([])
  })

  it("name files in their tables that are there", () => {
    const readmes = pages.filter((path) => path.endsWith("README.md"))
    expect(readmes.flatMap((path) => tableIssues(path, readText(path), has))).toEqual([])
  })

  it.each([
    ["[a](gone.md)", "kernel/README.md: gone.md: no such file"],
    ["# Here\n[a](#there)", "kernel/README.md: #there: no such section"],
    ["[a](../README.md#gone)", "kernel/README.md: ../README.md#gone: no such section"],
    ["| `gone.ts` | what it was |", "kernel/README.md: gone.ts: no such file"]
  ])("would catch %j", (text, issue) => {
    const path = "kernel/README.md"
    const read = () => "## Here"
    const inTree = (asked: string) => asked === "README.md" || asked === path
    expect([...linkIssues(path, text, { has: inTree, read }), ...tableIssues(path, text, inTree)]).toEqual([issue])
  })
})
