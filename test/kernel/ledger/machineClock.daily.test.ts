// A facilitator on a machine with a wrong clock and a ledger with a correct one: time limits use the ledger's time, so
// a payment settles anyway.
import { expect, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { Base64 } from "effect/encoding"
import { describe } from "vitest"
import { readEnvelope } from "../../../kernel/stellar/Envelope.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { skewedClock } from "../../support/skewedClock.ts"

describe.each([
  ["half an hour slow", -1_800_000],
  ["26 hours slow", -26 * 3_600_000],
  ["an hour fast", 3_600_000]
] as const)("with a clock %s", (_name, millis) => {
  it.live(
    "settles with an envelope bounded by a day of ledger time",
    () =>
      Effect.gen(function* () {
        const right = yield* startFacilitator({ channels: 1 })
        const wrong = yield* startFacilitator({ ledgerUrl: right.ledgerUrl, channels: 1 }).pipe(
          Effect.provideServiceEffect(Clock.Clock, skewedClock(millis))
        )
        const payer = yield* wrong.account()
        const seller = (yield* wrong.account(0n)).publicKey()
        const payment = yield* wrong.payment({ payer, payTo: seller, amount: 10_000n })
        const before = Number((yield* Effect.promise(() => right.rpc("getLatestLedger"))).closeTime)
        const answer = (yield* wrong.settle(payment.body)).json
        expect(answer, JSON.stringify(answer)).toMatchObject({ success: true })
        const after = Number((yield* Effect.promise(() => right.rpc("getLatestLedger"))).closeTime)
        const [row] = yield* wrong.sql<{ envelope: Uint8Array }>`select envelope from kernel_attempts`
        const envelope = readEnvelope(Base64.encode(row!.envelope))
        if (envelope._tag === "Failure" || envelope.success.type !== 5) throw new Error("no fee bump")
        const { cond } = envelope.success.feeBump.tx.innerTx.v1.tx
        const timeMax = cond.type === 2 ? Number(cond.v2.timeBounds?.maxTime) : 0
        expect(timeMax).toBeGreaterThanOrEqual(before - 60 + 86_400)
        expect(timeMax).toBeLessThanOrEqual(after + 86_400)
      }).pipe(Effect.scoped),
    240_000
  )
})
