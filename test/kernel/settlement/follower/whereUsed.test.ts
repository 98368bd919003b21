// Every possible use of an expired authorization, and every possible answer of a node about it: the conclusion is true.
import { describe, expect, it } from "vitest"
import { type UseQuestion, type WhereUsed, whereUsed } from "../../../../kernel/settlement/follower/whereUsed.ts"

const [expiresLedger, lifeLedgers] = [15, 3]
const ledgers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

/** The answer about an authorization, given the result of the ledger search. */
const answerOf = (where: WhereUsed, used: number | undefined): "Found" | "Unused" | "Forgotten" | "Unknown" => {
  if (where._tag !== "Search") return where._tag
  if (used !== undefined && used >= where.fromLedger && used <= where.toLedger) return "Found"
  if (where.fromLedger === where.toLedger && !where.isWhole) return "Unknown"
  return where.isWhole ? "Unused" : "Forgotten"
}

/** The first untrue answer, over all uses, later uses of the same nonce, nodes and histories. */
const firstUntrue = (product: typeof whereUsed): string | undefined => {
  for (const used of [undefined, ...ledgers(expiresLedger - lifeLedgers, expiresLedger)])
    for (const reused of [undefined, 16, 17])
      for (const latestLedger of ledgers(12, 20))
        for (const oldestLedger of ledgers(1, 18))
          for (const isKept of [true, false]) {
            const seen = (ledger: number | undefined) => ledger !== undefined && ledger <= latestLedger
            const isLive = seen(used) && (latestLedger <= expiresLedger || isKept)
            const entryLedger = seen(reused) ? reused : isLive ? used : undefined
            const question: UseQuestion = { expiresLedger, lifeLedgers, latestLedger, entryLedger, oldestLedger }
            const answer = answerOf(product(question), used)
            const isUsed = used !== undefined
            const isReadable = isUsed && used >= oldestLedger && latestLedger >= expiresLedger
            if (answer === "Unused" && isUsed) return `unused, and it was used: ${JSON.stringify(question)}`
            if (answer === "Found" && !isUsed) return `found, and it was not used: ${JSON.stringify(question)}`
            if (isReadable && answer !== "Found")
              return `${answer}, and its use can be read: ${JSON.stringify(question)}`
          }
  return undefined
}

describe("the search for an unrecorded expired authorization", () => {
  it("finds every readable use of an expired authorization, and only true ones", () => {
    expect(firstUntrue(whereUsed)).toBeUndefined()
  })

  it("finds all history at a node that has the network's first ledger", () => {
    const asked = { expiresLedger, lifeLedgers, latestLedger: 20, entryLedger: undefined, isFirstLedger: true }
    expect(whereUsed({ ...asked, oldestLedger: 14 })).toMatchObject({ _tag: "Search", fromLedger: 14, isWhole: true })
    expect(whereUsed({ ...asked, oldestLedger: 16 })._tag).toBe("Unused")
  })

  it("takes an absent entry for unused once the window in seconds has ended", () => {
    const asked = { expiresLedger, lifeLedgers, entryLedger: undefined, oldestLedger: 1, endedLedger: 13 }
    expect(ledgers(12, 14).map((latestLedger) => whereUsed({ ...asked, latestLedger })._tag)).toEqual([
      "Unknown",
      "Unused",
      "Unused"
    ])
    const used = whereUsed({ ...asked, latestLedger: 14, entryLedger: 12 })
    expect(used).toMatchObject({ _tag: "Search", fromLedger: 12, toLedger: 12 })
  })

  it.each<[string, typeof whereUsed]>([
    ["its expiry came first", () => ({ _tag: "Unused" })],
    [
      "an absent entry meant unused",
      (asked) => (asked.entryLedger === undefined ? { _tag: "Unused" } : whereUsed(asked))
    ],
    [
      "any entry were its own",
      (asked) => whereUsed({ ...asked, expiresLedger: asked.entryLedger ?? asked.expiresLedger })
    ],
    ["a part of its life were all of it", (asked) => ({ ...whereUsed(asked), isWhole: true }) as WhereUsed]
  ])("would be seen untrue if %s", (_, product) => {
    expect(firstUntrue(product)).toBeDefined()
  })
})
