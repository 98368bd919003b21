// The payment routes as a seller meets them: shapes, statuses and words, over HTTP, on each database of the run. One
// facilitator serves the file; money is counted on the ledger.
import { expect, layer } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, Layer } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { awaitTransaction } from "../../../runtime/redteam/rpcCall.ts"

class Running extends Context.Service<Running, Facilitator>()("test/Running") {}

const price = 10_000n
const hash = /^[0-9a-f]{64}$/

describe.each(databaseKinds)("payment routes on %s", (database) => {
  layer(Layer.effect(Running, startFacilitator({ database })), { timeout: 240_000, excludeTestServices: true })(
    (it) => {
      const honest = Effect.gen(function* () {
        const facilitator = yield* Running
        const payer = yield* facilitator.account()
        const seller = yield* facilitator.account(0n)
        const payment = yield* facilitator.payment({ payer, payTo: seller.publicKey(), amount: price })
        return { facilitator, payer: payer.publicKey(), seller: seller.publicKey(), payment, body: payment.body }
      })

      it.effect("/supported lists kinds, signers and fee sponsorship [S59, S60, S61, S7, S28, S47, S306, S314]", () =>
        Effect.gen(function* () {
          const facilitator = yield* Running
          const answer = yield* facilitator.ask("/supported")
          expect(answer.status).toBe(200)
          expect(answer.headers.get("content-type")).toContain("application/json")
          const signer = answer.json.kinds[0].signer
          const ceilings = {
            maxFeeStroops: expect.stringMatching(/^[1-9][0-9]*$/),
            maxResourceFeeStroops: expect.stringMatching(/^[1-9][0-9]*$/),
            maxInclusionFeeStroops: expect.stringMatching(/^[1-9][0-9]*$/)
          }
          const kindsOf = (scheme: string, extra: object) =>
            ["ledger:testnet", "stellar:testnet"].map((network) => ({
              x402Version: 2,
              scheme,
              network,
              signer,
              extra: { areFeesSponsored: true, ...ceilings, ...extra }
            }))
          const uptoContract = expect.stringMatching(/^C[A-Z2-7]{55}$/)
          expect(answer.json.kinds).toEqual([
            ...kindsOf("exact", {}),
            ...kindsOf("upto", { uptoContract, facilitatorAddress: signer }),
            ...kindsOf("batch-settlement", {
              batchContract: expect.stringMatching(/^C[A-Z2-7]{55}$/),
              minDeposit: expect.stringMatching(/^[1-9][0-9]*$/)
            })
          ])
          expect(answer.json.signers["ledger:*"]).toContain(signer)
          expect(answer.json.signers["stellar:*"]).toEqual(answer.json.signers["ledger:*"])
          expect(answer.json.extensions).toContain("payment-identifier")
        })
      )

      it.effect("verify accepts a valid payment and names its payer [S2, S49, S50, S51, S52, S53, S74, S77]", () =>
        Effect.gen(function* () {
          const { body, facilitator, payer, seller } = yield* honest
          const answer = yield* facilitator.verify(body)
          expect(answer.status).toBe(200)
          expect(answer.json).toEqual({ isValid: true, payer })
          expect(yield* facilitator.balance(seller)).toBe(0n)
        })
      )

      it.effect(
        "settles without prior verify, through a channel and a fee bump [S10, S11, S12, S55, S56, S57, S80, S81, S82, S83, S16]",
        () =>
          Effect.gen(function* () {
            const { body, facilitator, payer, payment, seller } = yield* honest
            const answer = yield* facilitator.settle(body)
            expect(answer.status, answer.text).toBe(200)
            expect(answer.json).toMatchObject({ success: true, payer, network: "ledger:testnet" })
            expect(answer.json.transaction).toMatch(hash)
            expect(yield* facilitator.balance(seller)).toBe(price)
            expect(yield* facilitator.balance(payer)).toBe(1_000_000_000n - price)
            const included = yield* Effect.promise(() => awaitTransaction(facilitator.rpc, answer.json.transaction))
            expect(included).toMatchObject({ status: "SUCCESS", feeBump: true })
            const { kinds, signers } = (yield* facilitator.ask("/supported")).json
            expect(signers["ledger:*"]).not.toContain(payer)
            expect(yield* facilitator.balance(kinds[0].signer)).toBe(0n)
            expect(payment.transaction).not.toBe(included.envelopeXdr)
          })
      )

      it.effect("answers in the seller's spelling [S7, S8]", () =>
        Effect.gen(function* () {
          const { facilitator } = yield* honest
          const payer = yield* facilitator.account()
          const seller = yield* facilitator.account(0n)
          const common = { payer, payTo: seller.publicKey(), amount: price, network: "stellar:testnet" }
          const settled = yield* facilitator.settle((yield* facilitator.payment(common)).body)
          expect(settled.json).toMatchObject({ success: true, network: "stellar:testnet" })
          const expired = yield* facilitator.payment({ ...common, tamper: { expiryOffset: -100 } })
          expect((yield* facilitator.verify(expired.body)).json.invalidReason).toBe("invalid_stellar_auth_expired")
          const neutral = yield* facilitator.payment({
            ...common,
            network: "ledger:testnet",
            tamper: { expiryOffset: -100 }
          })
          expect((yield* facilitator.verify(neutral.body)).json.invalidReason).toBe("invalid_ledger_auth_expired")
        })
      )

      it.effect(
        "every refusal has a reason in the payment's shape on both routes [S54, S58, S75, S261, S262, S263, S264, S265, S273, S328]",
        () =>
          Effect.gen(function* () {
            const {
              facilitator,
              payment: { body }
            } = yield* honest
            const changed = (change: (body: any) => void) => {
              const copy: any = structuredClone(body)
              change(copy)
              return copy
            }
            const both = (field: string, value: unknown) => (copy: any) => {
              copy.paymentRequirements[field] = value
              copy.paymentPayload.accepted[field] = value
            }
            const cases: ReadonlyArray<readonly [string, number, unknown]> = [
              ["invalid_request", 400, "{"],
              ["invalid_request", 400, []],
              ["invalid_request", 400, changed((copy) => delete copy.paymentPayload)],
              [
                "invalid_x402_version",
                200,
                changed((copy) => {
                  copy.x402Version = 1
                  copy.paymentPayload.x402Version = 1
                })
              ],
              ["unsupported_scheme", 200, changed(both("scheme", "barter"))],
              ["unsupported_network", 200, changed(both("network", "ledger:pubnet"))],
              [
                "network_mismatch",
                200,
                changed((copy) => {
                  copy.paymentRequirements.network = "ledger:pubnet"
                })
              ],
              [
                "invalid_ledger_asset_not_allowed",
                200,
                changed(both("asset", "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSA"))
              ],
              [
                "requirements_mismatch",
                200,
                changed((copy) => {
                  copy.paymentRequirements.amount = "9999"
                })
              ],
              [
                "invalid_exact_ledger_payload_malformed",
                200,
                changed((copy) => {
                  copy.paymentPayload.payload.transaction = "AAAA"
                })
              ]
            ]
            for (const [reason, status, hostile] of cases) {
              const verified = yield* facilitator.verify(hostile)
              expect([reason, verified.status, verified.json.isValid, verified.json.invalidReason]).toEqual([
                reason,
                status,
                false,
                reason
              ])
              const settled = yield* facilitator.settle(hostile)
              expect([reason, settled.status, settled.json.success, settled.json.errorReason]).toEqual([
                reason,
                status,
                false,
                reason
              ])
              expect(settled.json).toMatchObject({ transaction: "", network: expect.any(String) })
            }
          })
      )

      it.effect("verify reports why a transfer cannot succeed [S266, S267]", () =>
        Effect.gen(function* () {
          const { facilitator } = yield* honest
          const poor = yield* facilitator.account(0n)
          const seller = yield* facilitator.account(0n)
          const noBalance = yield* facilitator.payment({ payer: poor, payTo: seller.publicKey(), amount: price })
          const refused = yield* facilitator.verify(noBalance.body)
          expect(refused.json).toMatchObject({
            isValid: false,
            invalidReason: "invalid_ledger_enforcing_simulation_failed",
            payer: poor.publicKey()
          })
          expect(refused.json.invalidMessage).toMatch(/balance/)
          const payer = yield* facilitator.account()
          const stranger = Keypair.random().publicKey()
          const noTrustline = yield* facilitator.payment({ payer, payTo: stranger, amount: price })
          const answer = yield* facilitator.settle(noTrustline.body)
          expect(answer.json).toMatchObject({
            success: false,
            errorReason: "invalid_ledger_enforcing_simulation_failed"
          })
        })
      )

      it.effect("settles one authorization once, however often it is sent [S96, S91]", () =>
        Effect.gen(function* () {
          const { body, facilitator, seller } = yield* honest
          const first = yield* facilitator.settle(body)
          expect(first.json.success).toBe(true)
          const again = yield* facilitator.settle(body)
          expect(again.json).toMatchObject({
            success: false,
            errorReason: "settle_ledger_already_settled",
            transaction: first.json.transaction
          })
          expect((yield* facilitator.verify(body)).json.isValid).toBe(false)
          expect(yield* facilitator.balance(seller)).toBe(price)
        })
      )

      it.effect("a retry with the seller's key returns the success; other terms conflict [S93, S268]", () =>
        Effect.gen(function* () {
          const facilitator = yield* Running
          const payer = yield* facilitator.account()
          const seller = yield* facilitator.account(0n)
          const id = "pay_0123456789abcdef"
          const common = {
            payer,
            payTo: seller.publicKey(),
            amount: price,
            extensions: { "payment-identifier": { info: { required: false, id } } }
          }
          const payment = yield* facilitator.payment(common)
          const key = { "idempotency-key": "the-sale-of-one-page" }
          const first = yield* facilitator.settle(payment.body, key)
          expect(first.json.success, first.text).toBe(true)
          const again = yield* facilitator.settle(payment.body, key)
          expect([again.status, again.json]).toEqual([200, first.json])
          const withoutKey = yield* facilitator.settle(payment.body)
          expect(withoutKey.json).toMatchObject({ success: false, transaction: first.json.transaction })
          const other = yield* facilitator.payment(common)
          const conflict = yield* facilitator.settle(other.body)
          expect([conflict.status, conflict.json.errorReason]).toEqual([409, "payment_identifier_conflict"])
          const verified = yield* facilitator.verify(other.body)
          expect([verified.status, verified.json.invalidReason]).toEqual([409, "payment_identifier_conflict"])
          expect(yield* facilitator.balance(seller.publicKey())).toBe(price)
          const found = yield* facilitator.ask(`/settlements?identifier=${id}`)
          expect(found.json, found.text).toMatchObject({
            items: [{ status: "success", transaction: first.json.transaction }]
          })
        })
      )
    }
  )
})
