// The blocks of a guide and their purposes: a command to run, a file to write, an output to compare, data that must
// parse, a drawing. A reader sees the same marks (`README.md` in this folder): the first line of a block names its
// file, or explains why it is not run here; a command that keeps running names its URL.
import { stripVTControlCharacters } from "node:util"

export type Step =
  | { readonly kind: "run"; readonly text: string }
  | { readonly kind: "leave"; readonly text: string; readonly url: string }
  | { readonly kind: "stop" }

export type Block = { readonly line: number; readonly section?: string } & (
  | { readonly kind: "commands"; readonly steps: ReadonlyArray<Step>; readonly text: string; readonly shows?: string }
  | { readonly kind: "file"; readonly name: string; readonly text: string }
  | { readonly kind: "data"; readonly language: "json" | "yaml"; readonly text: string }
  | { readonly kind: "drawing" }
  | { readonly kind: "not-run"; readonly why: string }
  | { readonly kind: "invalid"; readonly why: string }
)

const notRun = /^(?:#|\/\/|--|;) not run here: (.+)$/
const named = /^(?:#|\/\/|--|;) ([\w./-]+\.[a-z]+)$/
const left = /^(.*?)\s+# leave it running; it answers at (https?:\/\/\S+)$/
const stopped = /^# now stop it\b/

/** The lines of a block of commands, those in a row as one run; a line that ends in a backslash continues. */
export const stepsOf = (text: string): ReadonlyArray<Step> => {
  const steps: Array<Step> = []
  let lines: Array<string> = []
  const flush = () => {
    if (lines.some((line) => /^\s*[^#\s]/.test(line))) steps.push({ kind: "run", text: lines.join("\n") })
    lines = []
  }
  for (const line of text.split("\n")) {
    const [, command, url] = left.exec(line) ?? []
    if (command !== undefined && url !== undefined) {
      const before = lines.findLastIndex((earlier) => !earlier.endsWith("\\")) + 1
      const begun = lines.splice(before)
      flush()
      steps.push({ kind: "leave", text: [...begun, command].join("\n"), url })
    } else if (stopped.test(line)) {
      flush()
      steps.push({ kind: "stop" })
    } else lines.push(line)
  }
  flush()
  return steps
}

const blockOf = (language: string, text: string, line: number): Block => {
  const first = text.split("\n")[0] ?? ""
  const why = notRun.exec(first)?.[1]
  if (why !== undefined) return { kind: "not-run", why, line }
  const name = named.exec(first)?.[1]
  if (name !== undefined) return { kind: "file", name, text, line }
  if (language === "sh") return { kind: "commands", steps: stepsOf(text.trimEnd()), text, line }
  if (language === "json" || language === "yaml") return { kind: "data", language, text, line }
  if (language === "text" || language === "") return { kind: "drawing", line }
  return { kind: "invalid", why: `a block of ${language} neither names its file nor says why it is not run`, line }
}

/**
 * Number of commands that a reader types in a block: lines that are not comments; a continued line counts once, and
 * `&&` separates commands.
 */
export const commandsOf = (block: Block): number =>
  block.kind !== "commands"
    ? 0
    : block.text
        .replaceAll(/\\\n/g, " ")
        .split("\n")
        .filter((line) => /^\s*[^#\s]/.test(line)).length

/** The heading above a position of a page. */
const sectionAt = (page: string, at: number): string =>
  [
    ...page
      .slice(0, at)
      .replaceAll(fence, "")
      .matchAll(/^#{1,2} (.+)$/gm)
  ].at(-1)?.[1] ?? ""

/** The paths in a page's table: the anchor of a section, and the number of its commands. */
export const pathsOf = (page: string): ReadonlyArray<{ readonly section: string; readonly stated: number }> =>
  [...page.matchAll(/\[(\d+) commands?\]\(#([\w-]+)\)/g)].map(([, stated, section]) => ({
    section: section!,
    stated: Number(stated)
  }))

const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w -]/g, "")
    .replaceAll(" ", "-")

/** Commands of each section of a page, by its anchor. */
export const commandsBySection = (page: string): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const block of blocksOf(page)) {
    const anchor = anchorOf(block.section ?? "")
    counts.set(anchor, (counts.get(anchor) ?? 0) + commandsOf(block))
  }
  return counts
}

const fence = /^```([\w-]*)[^\n]*\n([\s\S]*?)^```$/gm

/** A page's blocks in order. A block of text directly below commands is their output. */
export const blocksOf = (page: string): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  let end = 0
  for (const match of page.matchAll(fence)) {
    const [whole, language = "", text = ""] = match
    const line = page.slice(0, match.index).split("\n").length
    const block = { ...blockOf(language, text, line), section: sectionAt(page, match.index) }
    const last = blocks.at(-1)
    const isBelow = page.slice(end, match.index).trim() === "" && end > 0
    if (block.kind === "drawing" && isBelow && last?.kind === "commands")
      blocks[blocks.length - 1] = { ...last, shows: text.trimEnd() }
    else if (!(block.kind === "drawing" && isBelow && last?.kind === "not-run")) blocks.push(block)
    end = match.index + whole.length
  }
  return blocks
}

/** The lines of `shows` that are missing in `output`, in any order; `…` matches anything. */
export const missingIn = (output: string, shows: string): ReadonlyArray<string> => {
  const plain = stripVTControlCharacters(output).replace(/[ \t]+/g, " ")
  return shows.split("\n").filter((line) => {
    const parts = line
      .trim()
      .replace(/[ \t]+/g, " ")
      .split("…")
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
    return line.trim() !== "" && !new RegExp(parts.join(".*")).test(plain)
  })
}
