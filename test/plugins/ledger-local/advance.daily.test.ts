// `POST /advance`: months of network time pass in seconds, with the network's own lifetimes.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Address, Asset, Contract, nativeToScVal, Operation } from "@stellar/stellar-sdk"
import { handle } from "../../../plugins/ledger-local/httpApi.ts"
import { LocalLedger } from "../../../plugins/ledger-local/LocalLedger.ts"
import { apply, fund, ledgerLayer, passphrase, transaction } from "./support.ts"

const post = Effect.fnUntraced(function* (query: string) {
  const ledger = yield* LocalLedger
  const response = yield* handle(ledger, new Request(`http://localhost/advance${query}`, { method: "POST" }))
  return { status: response.status, body: (yield* Effect.promise(() => response.json())) as any }
})

describe("advance", () => {
  it.effect("advance archives a contract, and a simulation requests its restore", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const owner = yield* fund("owner")
      const asset = new Asset("OLD", owner.publicKey())
      const simulated = Effect.fnUntraced(function* (operation: any) {
        const draft = yield* transaction(owner, [operation], { signers: [] })
        return yield* ledger.call("simulateTransaction", { transaction: draft.toEnvelope().toXdr("base64") })
      })
      const deploy = Operation.createStellarAssetContract({ asset })
      const { minResourceFee, transactionData } = yield* simulated(deploy)
      yield* apply(
        yield* transaction(owner, [deploy], {
          fee: (BigInt(minResourceFee) + 100n).toString(),
          configure: (builder) => builder.setSorobanData(transactionData).setTimeout(0)
        })
      )
      const mint = new Contract(asset.contractId(passphrase)).call(
        "mint",
        new Address(new Contract(asset.contractId(passphrase)).contractId()).toScVal(),
        nativeToScVal(1n, { type: "i128" })
      )
      expect((yield* simulated(mint)).restorePreamble).toBeUndefined()
      const { minPersistentLedgers } = ledger.ledger.options.settings.ttl
      const before = ledger.ledger.latest.sequence
      const { status, body } = yield* post(`?ledgers=${minPersistentLedgers}`)
      expect({ status, body }).toEqual({ status: 200, body: { ledger: before + minPersistentLedgers } })
      expect((yield* simulated(mint)).restorePreamble.transactionData).toBeTypeOf("string")
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("advance sets the clock ahead for the next ledger", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const { closeTime, sequence } = ledger.ledger.latest
      expect((yield* post("?seconds=86400")).body).toEqual({ ledger: sequence + 1 })
      expect(ledger.ledger.latest.closeTime - closeTime).toBe(86_400n)
      yield* ledger.close
      expect(ledger.ledger.latest.closeTime - closeTime).toBe(86_401n)
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("advance requires either ledgers or seconds, within bounds", () =>
    Effect.gen(function* () {
      for (const query of ["", "?ledgers=0", "?ledgers=1000001", "?seconds=x", "?seconds=1&ledgers=1", "?seconds=-1"])
        expect((yield* post(query)).status).toBe(400)
    }).pipe(Effect.provide(ledgerLayer()))
  )
})
