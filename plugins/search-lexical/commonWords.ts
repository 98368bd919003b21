// Prior of how common a word is among interfaces of any kind, before a catalog has been counted, for the weights of
// words (`evidence.ts`). A catalog of sixty listings cannot separate "endpoint" from a word of one trade; several
// hundred providers of public interfaces can. Terms that describe every listing of this protocol by definition count as
// if each listing contained them. Pure.
import { commonShares } from "./commonShares.ts"

/** A listing is a paid endpoint, tool or service over HTTP or MCP, on any topic. */
const byDefinition = new Set("api endpoint http https mcp paid service tool x402".split(" "))

/** The singular of an English noun, near enough to be the same for both numbers of one word. */
export const singularOf = (word: string): string =>
  /^[a-z]{4,}$/.test(word) ? word.replace(/ies$/, "y").replace(/(?<=[^su])s$/, "") : word

/** Parses shares in thousandths. A continuation line of the same share starts without a number. */
const readShares = (text: string): ReadonlyMap<string, number> => {
  const shares = new Map<string, number>()
  let share = 0
  for (const word of text.trim().split(/\s+/)) {
    if (/^\d+$/.test(word)) share = Number(word) / 1_000
    else shares.set(word, share)
  }
  return shares
}

const shares = readShares(commonShares)

/** A less frequent word belongs to a few trades. */
const usualMin = 0.08

/** The share of interfaces of any kind that use a word, 0 to 1; 0 for a word that is tied to a topic. */
export const commonShareOf = (word: string): number => {
  const singular = singularOf(word)
  if (byDefinition.has(singular)) return 1
  const share = shares.get(singular) ?? 0
  return share < usualMin ? 0 : share
}
