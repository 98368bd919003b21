// A payment that failed on the ledger and published its authorization: it is watched to its last ledger, and a later
// use corrects the settlement.
import { expect, it } from "@effect/vitest"
import { StrKey } from "@stellar/stellar-sdk"
import { Effect, Fiber } from "effect"
import { describe } from "vitest"
import type { Frame } from "../../../plugins/ledger-local/transaction/Frame.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { trust } from "../../support/trust.ts"

const price = 10_000n

const rows = ({ sql }: Facilitator) =>
  Effect.orDie(
    sql<{ id: string; state: string; reason: string | null; message: string | null; watched: boolean }>`
    select id::text as id, state, reason, reason_message as message, watch_after is not null as watched
    from kernel_settlements order by recorded_at`
  )

const typesOf = ({ sql }: Facilitator) =>
  Effect.map(
    Effect.orDie(
      sql<{ type: string }>`select type from kernel_facts where starts_with(type, 'settlement.') order by id`
    ),
    (all) => all.map(({ type }) => type.replace("settlement.", ""))
  )

/** Holds the submissions of a facilitator's channels until it is released. */
const hold = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const found = yield* facilitator.sql<{ address: string }>`select address from kernel_channels`
  const channels = new Set(found.map(({ address }) => address))
  let isHeld = true
  yield* facilitator.ledger.setFaults([
    {
      drops: ({ source }: Frame) => isHeld && channels.has(StrKey.encodeEd25519PublicKey(source.ed25519 as Uint8Array))
    }
  ])
  return Effect.sync(() => {
    isHeld = false
  })
})

/** Settles payments to a recipient without a trustline when they land; afterwards it has one again. */
const failed = Effect.fnUntraced(function* (
  facilitator: Facilitator,
  tampers: ReadonlyArray<{ readonly nonce?: bigint; readonly expiryOffset?: number }>
) {
  const payer = yield* facilitator.account()
  const seller = yield* facilitator.account(0n)
  const payTo = seller.publicKey()
  const bodies = yield* Effect.forEach(tampers, (tamper) =>
    Effect.map(facilitator.payment({ payer, payTo, amount: price, tamper, secondsPerLedger: 1 }), ({ body }) => body)
  )
  const [body] = bodies
  const asset = body!.paymentRequirements.asset
  const release = yield* hold(facilitator)
  const asked = yield* Effect.forkChild(facilitator.settle(body))
  yield* eventually(rows(facilitator), (all) => all.length > 0)
  yield* trust(facilitator, seller, asset, "0")
  yield* release
  const answer = yield* Fiber.join(asked)
  yield* trust(facilitator, seller, asset, "1000")
  return { answer, bodies, payTo }
})

describe("a failed payment whose authorization lives", () => {
  it.live(
    "is settled and delivered once when anyone submits it",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator()
        const other = yield* startFacilitator({ ledgerUrl: facilitator.ledgerUrl })
        const { answer, bodies, payTo } = yield* failed(facilitator, [{}])
        expect(answer.json, answer.text).toMatchObject({
          success: false,
          errorReason: "settle_ledger_transaction_failed",
          authorizationLivesUntilLedger: expect.any(Number)
        })
        const used = yield* other.settle(bodies[0])
        expect(used.json, used.text).toMatchObject({ success: true })
        const [row] = yield* eventually(rows(facilitator), (all) => all[0]!.state === "settled")
        expect(row).toMatchObject({ reason: null, watched: false })
        expect(yield* typesOf(facilitator)).toEqual(["recorded", "failed", "settled"])
        const shown = yield* facilitator.ask(`/settlements?hash=${used.json.transaction}`)
        expect(shown.json.items, shown.text).toMatchObject([{ status: "success", transaction: used.json.transaction }])
        expect((yield* facilitator.verify(bodies[0])).json).toMatchObject({ isValid: true })
        const again = yield* facilitator.settle(bodies[0])
        expect(again.json, again.text).toMatchObject({ success: true, transaction: used.json.transaction })
        expect((yield* facilitator.settle(bodies[0])).json).toMatchObject({ success: false })
        expect(yield* facilitator.balance(payTo)).toBe(price)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "is spent when another authorization uses its nonce",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator()
        const other = yield* startFacilitator({ ledgerUrl: facilitator.ledgerUrl })
        const nonce = 4_712n
        const { bodies } = yield* failed(facilitator, [{ nonce }, { nonce, expiryOffset: -3 }])
        const used = yield* other.settle(bodies[1])
        expect(used.json, used.text).toMatchObject({ success: true })
        const [row] = yield* eventually(rows(facilitator), (all) => !all[0]!.watched)
        expect(row).toMatchObject({ state: "failed", reason: "settle_ledger_authorization_spent" })
        expect(yield* typesOf(facilitator)).toEqual(["recorded", "failed", "spent"])
        const answer = yield* facilitator.settle(bodies[0])
        expect(answer.json.errorMessage, answer.text).toContain(used.json.transaction)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "is dead after its last ledger without a use",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ closeMillis: 100 })
        yield* failed(facilitator, [{ expiryOffset: -20 }])
        const [row] = yield* eventually(rows(facilitator), (all) => all[0]?.watched === false)
        expect(row).toMatchObject({ state: "failed", reason: "settle_ledger_transaction_failed" })
        expect(row!.message).toMatch(/the authorization was never used and is dead$/)
      }).pipe(Effect.scoped),
    240_000
  )
})
