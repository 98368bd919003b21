import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { LedgerUnavailable } from "../../../kernel/ledger/LedgerRpc.ts"
import { readContractEvents } from "../../../kernel/ledger/readContractEvents.ts"
import { encodeValue, i128Of, i128Value, symbolOf, symbolValue } from "../../../kernel/stellar/Value.ts"
import { testnetUsdc as contract } from "../../../runtime/redteam/buyer.ts"

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64")
const item = (ledger: number, changes: object = {}) => ({
  ledger,
  contractId: contract,
  topic: [base64(encodeValue(symbolValue("paid")))],
  value: base64(encodeValue(i128Value(BigInt(ledger)))),
  ...changes
})
/** A node that answers page after page, and the requests that it received. */
const node = (...pages: ReadonlyArray<object>) => {
  const asked: Array<any> = []
  const read = readContractEvents((method, params, answer) => {
    asked.push(params)
    const page = pages[asked.length - 1] ?? pages.at(-1)
    return Schema.decodeUnknownEffect(answer)(page).pipe(
      Effect.mapError(() => new LedgerUnavailable({ operation: method, message: "not decoded" }))
    )
  })
  return { asked, read }
}
const full = Array.from({ length: 1_000 }, () => item(100))

describe("events of a contract", () => {
  it.effect("are read to the newest ledger, page after page", () =>
    Effect.gen(function* () {
      const { asked, read } = node(
        { latestLedger: 105, cursor: "c", events: full },
        { latestLedger: 106, cursor: "d", events: [item(103)] }
      )
      const { events, latestLedger } = yield* read(contract, 99)
      assert.deepStrictEqual([events.length, latestLedger], [1_001, 105])
      const { data, topics } = events.at(-1)!.event.body.v0
      assert.deepStrictEqual([symbolOf(topics[0]), i128Of(data)], ["paid", 103n])
      assert.deepStrictEqual(
        asked.map(({ pagination, startLedger }) => [startLedger, pagination.cursor]),
        [
          [99, undefined],
          [undefined, "c"]
        ]
      )
      assert.deepStrictEqual(asked[0].filters, [{ type: "contract", contractIds: [contract] }])
    })
  )

  it.effect("are not answered in part", () =>
    Effect.gen(function* () {
      for (const [pages, why] of [
        [[{ latestLedger: 20_000, events: [] }], /more ledgers/],
        [[{ latestLedger: 105, events: full }], /without a cursor/],
        [[{ latestLedger: 105, cursor: "c", events: full }], /more events/],
        [[{ latestLedger: 105, events: [item(98)] }], /not asked for/],
        [[{ latestLedger: 105, events: [item(100, { contractId: `${contract.slice(0, -1)}B` })] }], /not asked for/],
        [[{ latestLedger: 105, events: [item(100, { value: "/////w==" })] }], /not XDR/],
        [[{ latestLedger: 105, events: [item(100, { topic: ["/////w=="] })] }], /not XDR/]
      ] as const) {
        const error = yield* Effect.flip(node(...pages).read(contract, 99))
        assert.match(error.message, why)
      }
    })
  )
})
