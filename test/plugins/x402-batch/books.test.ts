import { Option, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { Recorded, recordedFact } from "../../../kernel/settlement/store/facts.ts"
import { begin, end } from "../../../plugins/analytics/recording/SettlementFact.ts"

const settlement = {
  id: "1",
  network: "ledger:testnet",
  scheme: "batch-settlement",
  asset: "CASSET",
  payer: "CCONTRACT",
  payTo: "GSELLER",
  amount: 70n,
  amountMax: 70n,
  innerHash: "ab".repeat(32),
  resourceUrl: Option.none<string>(),
  principal: { owner: "key:a", source: "key:a", keyed: true }
} as const

const counted = (books: { readonly kind: string; readonly sold: bigint } | undefined, moved: bigint) => {
  const { data } = recordedFact({ ...settlement, ...(books === undefined ? {} : { books }) }, "one")
  const recorded = {
    _tag: "Recorded",
    id: "1",
    at: new Date(0),
    data: Schema.decodeUnknownSync(Recorded)(data)
  } as const
  const ended = { transaction: settlement.innerHash, moved, feeChargedStroops: 1n, ledger: 7, reason: null }
  const known = end(begin(recorded, 1_000), { _tag: "Ended", id: "1", at: new Date(1), state: "settled", data: ended })
  return [known.scheme, known.status, known.amount]
}

describe("the books of batch-settlement", () => {
  it("count a claim with what it raises, and what carries money to and fro with nothing", () => {
    expect(counted({ kind: "claim", sold: 70n }, 0n)).toEqual(["batch-settlement:claim", "success", 70n])
    for (const kind of ["deposit", "settle", "refund", "withdraw"])
      expect(counted({ kind, sold: 0n }, 70n)).toEqual([`batch-settlement:${kind}`, "success", 0n])
    expect(counted(undefined, 70n)).toEqual(["batch-settlement", "success", 70n])
  })
})
