import { Option } from "effect"
import { expect, it } from "vitest"
import { EndedAuthorizationsCache } from "../../../../kernel/settlement/follower/Outcomes.ts"
import type { SettlementRecord } from "../../../../kernel/settlement/store/Settlements.ts"

const record = (number: number, state: SettlementRecord["state"]) =>
  ({
    network: "ledger:testnet",
    scheme: "exact",
    authorizationKey: `key-${number}`,
    state
  }) as SettlementRecord

const has = (ended: EndedAuthorizationsCache, number: number) =>
  ended.has({ network: "ledger:testnet", scheme: "exact", authorizationKey: Option.some(`key-${number}`) })

it("caches final outcomes and nothing that may still change", () => {
  const ended = new EndedAuthorizationsCache()
  const states = ["prepared", "submitted", "unresolved", "settled", "failed", "expired"] as const
  ended.note(states.map((state, number) => record(number, state)))
  expect(states.filter((_, number) => has(ended, number))).toEqual(["settled", "failed", "expired"])
  expect(ended.has({ network: "ledger:testnet", scheme: "exact", authorizationKey: Option.none() })).toBe(false)
})

it("caches the newest 10,000 outcomes", () => {
  const ended = new EndedAuthorizationsCache()
  for (let number = 0; number < 10_003; number++) ended.note([record(number, "settled")])
  expect([0, 1, 2, 3, 10_002].map((number) => has(ended, number))).toEqual([false, false, false, true, true])
})
