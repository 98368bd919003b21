// A contract whose balance was archived is paid all the same: the payment's own transaction restores what it needs, as
// the network has done since protocol 23, as long as the fee ceilings cover it; beyond them the payment is refused with
// what it would cost.
import { expect, it } from "@effect/vitest"
import { StrKey, xdr } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { randomBytes } from "node:crypto"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"

/** An asset's contract extends a balance's life by thirty days with each transfer. */
const balanceLedgers = 700_000
const price = 10n

/** A ledger far ahead of the last payment: persistent entries of that time are archived. */
const archive = ({ ledgerUrl }: Facilitator) =>
  Effect.promise(async () => {
    const response = await fetch(`${ledgerUrl}/advance?ledgers=${balanceLedgers}`, { method: "POST" })
    return response.status
  })

/** Archived entries that each sent settlement restored. */
const restoredBy = ({ sql }: Facilitator) =>
  Effect.map(sql<{ envelope: Uint8Array }>`select envelope from kernel_attempts where number = 1`, (rows) =>
    rows.map(({ envelope }) => {
      const bump = xdr.TransactionEnvelope.fromXdr(envelope).toXdrObject() as any
      const data = bump.feeBump.tx.innerTx.v1.tx.ext.sorobanData
      return data.ext.v === 1 ? data.ext.resourceExt.archivedSorobanEntries.length : 0
    })
  )

const isJudged = ({ status }: { readonly status: number }) => status === 200

it.live(
  "a contract's archived balance is restored by its payment, and beyond the fee ceiling the payment is refused",
  () =>
    Effect.gen(function* () {
      const before = yield* startFacilitator()
      const payTo = StrKey.encodeContract(randomBytes(32))
      const payer = yield* before.account()
      const pay = (facilitator: Facilitator) =>
        Effect.map(facilitator.payment({ payer, payTo, amount: price }), ({ body }) => body)
      const first = yield* eventually(Effect.flatMap(pay(before), before.settle), isJudged)
      expect(first.json.success, first.text).toBe(true)
      expect(yield* restoredBy(before)).toEqual([0])
      expect(yield* archive(before)).toBe(200)
      // Facilitators that begin after that: one that runs takes such a leap for another network.
      const { ledgerUrl } = before
      const strict = yield* startFacilitator({
        ledgerUrl,
        set: ["networks.ledger:testnet.fees.exact.max_resource_fee_stroops=60000"]
      })
      const refused = yield* eventually(Effect.flatMap(pay(strict), strict.verify), isJudged)
      expect(refused.json, refused.text).toMatchObject({
        isValid: false,
        invalidReason: "invalid_ledger_restore_required"
      })
      expect(refused.json.invalidMessage).toMatch(
        /^\d+ archived entries would be restored by the payment; the resource fee is \d+ stroops, the ceiling 60000\. /
      )
      const after = yield* startFacilitator({ ledgerUrl })
      const verified = yield* eventually(Effect.flatMap(pay(after), after.verify), isJudged)
      expect(verified.json, verified.text).toMatchObject({ isValid: true })
      const settled = yield* eventually(Effect.flatMap(pay(after), after.settle), isJudged)
      expect(settled.json.success, settled.text).toBe(true)
      const [restored] = yield* restoredBy(after)
      expect(restored).toBeGreaterThan(0)
      const again = yield* eventually(Effect.flatMap(pay(strict), strict.verify), isJudged)
      expect(again.json, again.text).toMatchObject({ isValid: true })
    }).pipe(Effect.scoped),
  240_000
)
