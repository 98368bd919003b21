// A plausible defect, as a change of the sources, and the command that must catch it. White space is ignored when a
// change is located, so that the formatter may break lines; apart from that the text must occur in the file exactly
// once, which `test/architecture/mutations.test.ts` checks for all lists.
import { readdirSync } from "node:fs"
import { fileURLToPath } from "node:url"

export interface Change {
  readonly file: string
  /** Text that occurs in the file exactly once, ignoring white space. */
  readonly from: string
  readonly to: string
}

export interface Mutation {
  readonly name: string
  readonly changes: ReadonlyArray<Change>
  /** Arguments of node, from the copy's root; caught when it exits with another status than 0. */
  readonly catcher: ReadonlyArray<string>
  /** Arguments that must pass on the unchanged copy, when the catcher's own would take too long there. */
  readonly unchanged?: ReadonlyArray<string>
  readonly environment?: Readonly<Record<string, string>>
}

/** The positions of every character that is no white space. */
const blackPositions = (text: string): ReadonlyArray<number> =>
  Array.from({ length: text.length }, (_, index) => index).filter((index) => !/\s/.test(text[index]!))

const withoutSpace = (text: string): string => text.replace(/\s+/g, "")

/** Occurrences of the change's text in the file's. */
export const occurrencesOf = ({ from }: Change, text: string): number =>
  withoutSpace(text).split(withoutSpace(from)).length - 1

/** The file's text with the change made; undefined unless its place is there exactly once. */
export const withChange = (change: Change, text: string): string | undefined => {
  if (occurrencesOf(change, text) !== 1) return undefined
  const expected = withoutSpace(change.from)
  const at = withoutSpace(text).indexOf(expected)
  const positions = blackPositions(text)
  const end = positions[at + expected.length - 1]! + 1
  return text.slice(0, positions[at]) + change.to.trimStart() + text.slice(end)
}

/** The names of all lists: every source beside this one that is neither the runner nor a test. */
export const listNames: ReadonlyArray<string> = readdirSync(fileURLToPath(new URL(".", import.meta.url)))
  .filter((file) => /^[a-z][A-Za-z0-9-]*\.ts$/.test(file) && file !== "run.ts")
  .map((file) => file.replace(/\.ts$/, ""))

export const readList = async (name: string): Promise<ReadonlyArray<Mutation>> =>
  ((await import(new URL(`${name}.ts`, import.meta.url).href)) as { readonly mutations: ReadonlyArray<Mutation> })
    .mutations
