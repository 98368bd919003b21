// The audit during live traffic: a payment in flight while it reads is not a finding, and each error of the books is
// one, even if a payment was in flight on the same channel.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import type { Claims } from "../../../kernel/audit/auditRows.ts"
import { compare } from "../../../kernel/audit/compare.ts"
import { compareBooks, withoutInFlight } from "../../../kernel/audit/compareBooks.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import * as NodeHttpCalls from "../../../runtime/platform/nodeHttpCalls.ts"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { readBooks, readView } from "../../support/readBooks.ts"

const platform = Layer.mergeAll(NodeServices.layer, NodeCrypto.layer, NodeHttpCalls.layer)

const startPaying = Effect.fnUntraced(function* (database: (typeof databaseKinds)[number]) {
  const facilitator = yield* startFacilitator({ database, channels: 1 })
  const payer = yield* facilitator.account()
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const pay = Effect.gen(function* () {
    const { body } = yield* facilitator.payment({ payer, payTo, amount: 10n })
    expect((yield* facilitator.settle(body)).json).toMatchObject({ success: true })
  })
  yield* pay
  return { facilitator, pay }
})

const rulesOf = (mismatches: ReadonlyArray<{ readonly rule: string }>) => mismatches.map(({ rule }) => rule).sort()
const raced = ["channel sequence", "recorded before sent", "recorded before sent"]

describe.each(databaseKinds)("the audit beside traffic on %s", (database) => {
  it.live(
    "leaves out payments that were in flight, and reports what later records do not explain",
    () =>
      Effect.gen(function* () {
        const { facilitator, pay } = yield* startPaying(database)
        const paidMeanwhile = (claims: Claims) =>
          Effect.andThen(Effect.andThen(pay, pay), readView(facilitator, claims))
        const { claims, report, view } = yield* compareBooks(paidMeanwhile).pipe(
          Effect.provideService(SqlClient.SqlClient, facilitator.sql)
        )
        const found = compare(claims, view).mismatches
        expect(rulesOf(found)).toEqual(raced)
        expect(report).toMatchObject({ settlements: 1, mismatches: [] })

        const later = (yield* readBooks(facilitator)).claims
        const remaining = (changed: Claims, before = claims) =>
          rulesOf(withoutInFlight(compare(before, view).mismatches, before, changed, view))
        expect(remaining(later)).toEqual([])
        expect(remaining(claims)).toEqual(raced)
        expect(remaining({ ...later, attempts: [] })).toEqual(["recorded before sent", "recorded before sent"])
        // An unused number of a used channel, and an unused channel.
        expect(remaining({ ...later, settlements: later.settlements.slice(0, -1) })).toContain("channel sequence")
        const channels = claims.channels.map((channel) => ({ ...channel, sequence: channel.sequence! - 1n }))
        expect(remaining(later, { ...claims, channels })).toEqual(["channel sequence"])
        const ahead = claims.channels.map((channel) => ({ ...channel, sequence: channel.sequence! + 9n }))
        expect(remaining(later, { ...claims, channels: ahead })).toEqual(["channel sequence"])
        // Rules that traffic cannot break are not read again.
        const settlements = claims.settlements.map((one) => ({ ...one, moved: "1" }))
        expect(remaining(later, { ...claims, settlements })).toEqual(["movement"])
      }).pipe(Effect.provide(platform), Effect.scoped),
    240_000
  )

  it.live(
    "reads an endpoint again that is behind the records, and reports what it does not show then",
    () =>
      Effect.gen(function* () {
        const { facilitator } = yield* startPaying(database)
        const { claims, view } = yield* readBooks(facilitator)
        const behind = { ...view, toLedger: Number(claims.settlements[0]!.ledger) - 1, entries: [] }
        const reportOver = (readings: number) => {
          let read = 0
          return compareBooks(() => Effect.sync(() => (++read < readings ? behind : view))).pipe(
            Effect.provideService(SqlClient.SqlClient, facilitator.sql),
            Effect.map(({ report }) => [read, rulesOf(report.mismatches)])
          )
        }
        expect(yield* reportOver(3)).toEqual([3, []])
        expect(yield* reportOver(Infinity)).toEqual([6, ["has the ledger's word"]])
      }).pipe(Effect.provide(platform), Effect.scoped),
    240_000
  )
})
