// The table of `languages.md`: written from a run with REACH_WRITE=1, and compared by every other run.
import assert from "node:assert/strict"
import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import process from "node:process"
import { root } from "./world.ts"

const page = join(root, "examples/guides/languages.md")
const marked = /(<!-- reach: .*? -->\n\n)([^<]*)(\n<!-- end of reach -->)/s

/** Rows of sellers that could not run here stay as they are. */
export const checkTable = async (
  head: ReadonlyArray<string>,
  rows: ReadonlyArray<readonly [name: string, ...cells: ReadonlyArray<string>]>
): Promise<void> => {
  const lineOf = (cells: ReadonlyArray<string>) => `| ${cells.join(" | ")} |`.replaceAll("|  |", "| |")
  const text = await readFile(page, "utf8")
  const written = marked.exec(text)?.[2] ?? ""
  const stored = written.split("\n").slice(2).filter(Boolean)
  const names = new Set(rows.map(([name]) => name))
  const left = stored.filter((line) => !names.has(line.split("|")[1]?.trim() ?? ""))
  const lines = [lineOf(head), `|${"---|".repeat(head.length)}`, ...rows.map(lineOf), ...left].join("\n")
  if (process.env["REACH_WRITE"] === "1") return writeFile(page, text.replace(marked, `$1${lines}\n$3`))
  assert.equal(written.trim(), lines, "the table of languages.md is stale: run it again with REACH_WRITE=1")
}
