// Bounds of an envelope that no other test would miss: the time after which it is too late, two contract calls in one
// transaction, and the least bid of a fee bump around a transaction that bids nothing itself.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Asset, Contract, Operation, TransactionBuilder, xdr } from "@stellar/stellar-sdk"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { NATIVE_CONTRACT } from "../../../../plugins/ledger-local/node/accounts.ts"
import { feeBump, fund, keypair, ledgerLayer, passphrase, send, transaction } from "../support.ts"

const pay = Operation.payment({ destination: keypair("seller").publicKey(), asset: Asset.native(), amount: "1" })

describe("an envelope", () => {
  it.effect("an envelope is too late only after its time bound", () =>
    Effect.gen(function* () {
      const payer = yield* fund("payer")
      const until = (maxTime: number) =>
        Effect.flatMap(
          transaction(payer, [pay], { configure: (builder) => builder.setTimebounds(0, maxTime) }),
          send
        ).pipe(Effect.map(({ code, status }) => code ?? status))
      expect(yield* until(60)).toBe("PENDING")
      yield* TestClock.adjust("1 hour")
      yield* (yield* LocalLedger).closeMany(12)
      expect(yield* until(60)).toBe("txTooLate")
      expect(yield* until(4_000_000_000)).toBe("PENDING")
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("holds one contract call and no second one", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const payer = yield* fund("payer")
      const call = new Contract(NATIVE_CONTRACT).call("decimals")
      const draft = yield* transaction(payer, [call])
      const simulated = yield* ledger.call("simulateTransaction", { transaction: draft.toEnvelope().toXdr("base64") })
      const built = yield* transaction(payer, [call], {
        fee: (BigInt(simulated.minResourceFee) + 200n).toString(),
        signers: [],
        configure: (builder) => builder.setSorobanData(simulated.transactionData).setTimeout(0)
      })
      const wire = built.toEnvelope().toXdrObject() as any
      wire.v1.tx.operations.push(wire.v1.tx.operations[0])
      const two = TransactionBuilder.fromXdr(xdr.TransactionEnvelope.fromXdrObject(wire), passphrase)
      two.sign(payer)
      expect((yield* send(two)).code).toBe("txMalformed")
    }).pipe(Effect.provide(ledgerLayer()))
  )
})

describe("a fee bump", () => {
  it.effect("bids the network's least even around a transaction that bids nothing", () =>
    Effect.gen(function* () {
      const [payer, sponsor] = [yield* fund("payer"), yield* fund("sponsor")]
      const inner = yield* transaction(payer, [pay], { fee: "0" })
      const wire = feeBump(sponsor, "200", inner, []).toEnvelope().toXdrObject() as any
      const bid = (fee: bigint) => {
        wire.feeBump.tx.fee = fee
        const bump = TransactionBuilder.fromXdr(xdr.TransactionEnvelope.fromXdrObject(wire), passphrase)
        bump.sign(sponsor)
        return send(bump)
      }
      expect((yield* bid(199n)).code).toBe("txInsufficientFee")
      expect((yield* bid(200n)).status).toBe("PENDING")
    }).pipe(Effect.provide(ledgerLayer()))
  )
})
