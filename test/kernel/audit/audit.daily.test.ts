// The auditor finds no issue in a facilitator's correct books, and finds the only change in otherwise equal books. Each
// rule is tested with an injected error that no other rule reports.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import type { Claims } from "../../../kernel/audit/auditRows.ts"
import { compare } from "../../../kernel/audit/compare.ts"
import type { LedgerView } from "../../../kernel/audit/readLedger.ts"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { readBooks } from "../../support/readBooks.ts"

interface ErrorBody {
  readonly rule: string
  readonly claims?: (claims: Claims) => Claims
  readonly view?: (view: LedgerView) => LedgerView
}

const settlement =
  (change: (one: Claims["settlements"][number]) => Partial<Claims["settlements"][number]>) =>
  (claims: Claims): Claims => ({
    ...claims,
    settlements: claims.settlements.map((one, index) => (index === 0 ? { ...one, ...change(one) } : one))
  })
const entry =
  (index: number, change: (one: LedgerView["entries"][number]) => Partial<LedgerView["entries"][number]>) =>
  (view: LedgerView): LedgerView => ({
    ...view,
    entries: view.entries.map((one, at) => (at === index ? { ...one, ...change(one) } : one))
  })

const errors: ReadonlyArray<ErrorBody> = [
  { rule: "recorded before sent", claims: (claims) => ({ ...claims, attempts: [] }) },
  {
    rule: "bid recorded before sent",
    claims: (claims) => ({
      ...claims,
      attempts: claims.attempts.map((one) => ({ ...one, outer_hash: "0".repeat(64) }))
    })
  },
  { rule: "has the ledger's word", view: (view) => ({ ...view, entries: view.entries.slice(0, -1) }) },
  { rule: "settled", view: entry(-1, () => ({})), claims: settlement(() => ({ ended_by: "0".repeat(64) })) },
  { rule: "failed", claims: settlement(() => ({ state: "failed" })) },
  { rule: "expired", claims: settlement(() => ({ state: "expired" })) },
  { rule: "ledger", claims: settlement(({ ledger }) => ({ ledger: ledger! + 1n })) },
  {
    rule: "fee",
    claims: settlement(({ fee_charged_stroops }) => ({ fee_charged_stroops: fee_charged_stroops! + 1n }))
  },
  { rule: "accounts", claims: settlement(({ channel_sequence }) => ({ channel_sequence: channel_sequence + 1n })) },
  { rule: "movement", claims: settlement(() => ({ moved: "1" })) },
  {
    rule: "channel comes back",
    claims: (claims) => ({
      ...claims,
      channels: claims.channels.map((one) => ({ ...one, settlement: claims.settlements[0]!.id }))
    })
  },
  {
    rule: "channel sequence",
    claims: (claims) => ({
      ...claims,
      channels: claims.channels.map((one) => ({ ...one, sequence: one.sequence! + 1n }))
    })
  },
  { rule: "channel exists", view: (view) => ({ ...view, sequences: new Map() }) },
  { rule: "facts", claims: (claims) => ({ ...claims, facts: claims.facts.slice(1) }) },
  {
    rule: "budget",
    claims: (claims) => ({ ...claims, budgets: claims.budgets.map((one) => ({ ...one, reserved: one.reserved + 1n })) })
  },
  {
    rule: "budget in all",
    claims: (claims) => ({ ...claims, totals: claims.totals.map((one) => ({ ...one, committed: one.committed + 1n })) })
  }
]

describe.each(databaseKinds)("the auditor on %s", (database) => {
  it.live(
    "the auditor finds no issue in correct books and each injected one",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database })
        const payer = yield* facilitator.account()
        const seller = (yield* facilitator.account(0n)).publicKey()
        for (let number = 0; number < 3; number++) {
          const { body } = yield* facilitator.payment({ payer, payTo: seller, amount: 10_000n })
          expect((yield* facilitator.settle(body)).json).toMatchObject({ success: true })
        }
        const { claims, view } = yield* readBooks(facilitator)
        const report = compare(claims, view)
        expect(report.mismatches).toEqual([])
        expect(report).toMatchObject({ settlements: 3, open: 0, unresolved: 0, forgotten: 0 })
        expect(report.transactions).toBeGreaterThanOrEqual(4)
        // A settlement that an operator gave up, and that ended later.
        const types = ["settlement.recorded", "settlement.unresolved", "settlement.settled"]
        const givenUp = compare({ ...claims, facts: claims.facts.map((fact) => ({ ...fact, types })) }, view)
        expect(givenUp.mismatches).toEqual([])
        for (const error of errors) {
          const { mismatches } = compare(error.claims?.(claims) ?? claims, error.view?.(view) ?? view)
          expect([error.rule, mismatches.map(({ rule }) => rule)]).toEqual([
            error.rule,
            expect.arrayContaining([error.rule])
          ])
        }
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    240_000
  )
})
