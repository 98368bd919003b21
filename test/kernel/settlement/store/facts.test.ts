import { expect, it } from "@effect/vitest"
import { Option } from "effect"
import { describe } from "vitest"
import type { Fact, NewFact } from "../../../../kernel/facts/Facts.ts"
import {
  endedFact,
  type EndState,
  readSettlementFact,
  recordedFact
} from "../../../../kernel/settlement/store/facts.ts"

const id = "00000000-0000-4000-a000-000000000001"
const hash = "ab".repeat(32)

/** As returned by the journal. */
const stored = (fact: NewFact): Fact => ({
  ...fact,
  id: 1n,
  position: 1n,
  principal: fact.principal ?? null,
  at: new Date(0),
  data: JSON.parse(JSON.stringify(fact.data))
})

const born = recordedFact(
  {
    id,
    network: "ledger:testnet",
    scheme: "exact",
    asset: "C1",
    payer: "G1",
    payTo: "G2",
    amountMax: 2n ** 100n,
    amount: 0n,
    innerHash: hash,
    resourceUrl: Option.none(),
    principal: { owner: "key:shop", source: "key:shop", keyed: true }
  },
  "one"
)

const ending = (state: EndState, by?: "operator") =>
  endedFact(
    { id, principal: "key:shop", innerHash: hash },
    {
      state,
      amountTransferred: state === "settled" ? 7n : undefined,
      feeChargedStroops: 100n,
      ledger: 9,
      reason: undefined
    },
    by
  )

describe("the facts of settlements", () => {
  it("settlement facts round-trip with bigint amounts and their principal", () => {
    expect(Option.getOrThrow(readSettlementFact(stored(born)))).toEqual({
      _tag: "Recorded",
      id,
      at: new Date(0),
      data: {
        network: "ledger:testnet",
        scheme: "exact",
        asset: "C1",
        payer: "G1",
        payTo: "G2",
        amountMax: 2n ** 100n,
        amount: 0n,
        facilitator: "one",
        transaction: hash,
        resourceUrl: null,
        principal: "key:shop"
      }
    })
    for (const state of ["settled", "failed", "expired", "unresolved"] as const) {
      const fact = ending(state, state === "failed" ? "operator" : undefined)
      expect([fact.type, fact.principal]).toEqual([`settlement.${state}`, "key:shop"])
      expect(Option.getOrThrow(readSettlementFact(stored(fact)))).toEqual({
        _tag: "Ended",
        id,
        at: new Date(0),
        state,
        data: {
          transaction: hash,
          moved: state === "settled" ? 7n : null,
          feeChargedStroops: 100n,
          ledger: 9,
          reason: null,
          ...(state === "failed" ? { by: "operator" } : {})
        }
      })
    }
  })

  it("facts of another kind, version or shape decode to None", () => {
    const settled = stored(ending("settled"))
    const data = settled.data as Record<string, unknown>
    for (const strange of [
      { ...settled, type: "settlement.sold" },
      { ...settled, type: "catalog.changed" },
      { ...settled, version: 2 },
      { ...settled, subject: "7" },
      { ...settled, data: null },
      { ...settled, data: { ...data, moved: "1.5" } },
      { ...settled, data: { ...data, moved: 7 } },
      { ...settled, data: { ...data, feeChargedStroops: "-1" } },
      { ...settled, data: { ...data, transaction: "x" } },
      { ...settled, data: { ...data, by: "unknown" } }
    ])
      expect(Option.isNone(readSettlementFact(strange))).toBe(true)
  })
})
