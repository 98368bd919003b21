// Horizon's ledgers, as far as payment clients read them.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { horizonLedgers } from "../../../../plugins/ledger-local/node/horizon.ts"
import { keypair, ledgerLayer } from "../support.ts"

const closeTimes = (page: any): ReadonlyArray<number> =>
  page._embedded.records.map((record: any) => Date.parse(record.closed_at) / 1_000)

describe("the ledgers of Horizon", () => {
  it.effect("lists ledgers a second apart even when the friendbot closed them concurrently", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      for (let i = 0; i < 25; i++) yield* ledger.fund(keypair(`account ${i}`).publicKey())
      const page = (order: string) =>
        closeTimes(horizonLedgers(ledger.ledger, new URL(`http://localhost/ledgers?limit=20&order=${order}`)))
      const newestFirst = page("desc")
      expect(newestFirst).toHaveLength(20)
      expect(newestFirst[0]).toBe(Number(ledger.ledger.latest.closeTime))
      expect((newestFirst[0]! - newestFirst[19]!) / 19).toBe(1)
      expect(page("asc")).toEqual([...page("asc")].sort((a, b) => a - b))
    }).pipe(Effect.provide(ledgerLayer()))
  )
})
