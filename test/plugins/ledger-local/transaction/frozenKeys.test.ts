// A transaction that would touch frozen keys enters no ledger, in any wrapping; a transaction with the network's
// exception does.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Crypto } from "../../../../kernel/platform/Crypto.ts"
import { Asset, Claimant, type Keypair, Operation, SorobanDataBuilder, xdr } from "@stellar/stellar-sdk"
import { accountKeyString, keyString, trustLineKey } from "../../../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import { testnet } from "../../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { accountOfStrKey, latin1 } from "../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import type { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { usdc } from "../../../../plugins/ledger-local/node/accounts.ts"
import { apply, feeBump, fund, keypair, ledgerLayer, send, transaction, usdcAdmin, usdcAsset } from "../support.ts"

const native = Asset.native()
const idOf = (key: Keypair) => accountOfStrKey(key.publicKey())
const accountOf = (key: Keypair): string => accountKeyString(idOf(key))
const lineOf = (key: Keypair): string => keyString(trustLineKey(idOf(key), usdc as never))

const [anna, boris, carla] = ["anna", "boris", "carla"].map(keypair) as [Keypair, Keypair, Keypair]
const pay = (to: Keypair, asset: Asset, source?: Keypair) =>
  Operation.payment({
    destination: to.publicKey(),
    asset,
    amount: "0.0000001",
    ...(source === undefined ? {} : { source: source.publicKey() })
  })

/** Three accounts with USDC; part of them is frozen afterwards. */
const frozen = (
  name: string,
  keys: ReadonlyArray<string>,
  run: (excepted: Set<string>) => Effect.Effect<void, unknown, LocalLedger | Crypto>
) => {
  const frozenKeys = new Set<string>()
  const freezeBypass = new Set<string>()
  it.effect(name, () =>
    Effect.gen(function* () {
      for (const one of ["anna", "boris", "carla"]) yield* fund(one, 100n)
      for (const key of keys) frozenKeys.add(key)
      yield* run(freezeBypass)
    }).pipe(Effect.provide(ledgerLayer({ settings: { ...testnet, frozenKeys, freezeBypass } })))
  )
}

const codeOf = Effect.fnUntraced(function* (source: Keypair, operation: xdr.Operation, signers = [source]) {
  return (yield* send(yield* transaction(source, [operation], { signers }))).code ?? "accepted"
})

const FROZEN = "txFrozenKeyAccessed"

describe("a frozen account", () => {
  frozen(
    "a frozen account acts in no role and receives no XLM",
    [accountOf(boris)],
    Effect.fnUntraced(function* () {
      expect(yield* codeOf(boris, pay(anna, native))).toBe(FROZEN)
      expect(yield* codeOf(anna, pay(boris, native))).toBe(FROZEN)
      expect(yield* codeOf(anna, pay(carla, native, boris), [anna, boris])).toBe(FROZEN)
      expect(yield* codeOf(anna, Operation.accountMerge({ destination: boris.publicKey() }))).toBe(FROZEN)
      const create = Operation.createAccount({ destination: boris.publicKey(), startingBalance: "5" })
      expect(yield* codeOf(anna, create)).toBe(FROZEN)
      const inner = yield* transaction(anna, [pay(carla, native)])
      expect((yield* send(feeBump(boris, "500", inner))).code).toBe(FROZEN)
      const wrapped = yield* send(feeBump(carla, "500", yield* transaction(anna, [pay(boris, native)])))
      expect(wrapped.code).toBe("txFeeBumpInnerFailed")
      // A payment to its trustline does not touch the account.
      expect((yield* apply(yield* transaction(anna, [pay(boris, usdcAsset)]))).code).toBe("txSuccess")
    })
  )

  frozen(
    "an excepted transaction may touch a frozen account",
    [accountOf(boris)],
    Effect.fnUntraced(function* (excepted) {
      const tx = yield* transaction(boris, [pay(anna, native)])
      expect((yield* send(tx)).code).toBe(FROZEN)
      excepted.add(latin1(tx.hash()))
      expect((yield* apply(tx)).code).toBe("txSuccess")
    })
  )
})

describe("a frozen trustline", () => {
  frozen(
    "a frozen trustline refuses every payment and change; its account does other operations",
    [lineOf(boris)],
    Effect.fnUntraced(function* () {
      const admin = yield* usdcAdmin
      const offer = { selling: usdcAsset, buying: native, amount: "0.0000001", price: "1" }
      for (const operation of [
        pay(anna, usdcAsset),
        Operation.changeTrust({ asset: usdcAsset, limit: "50" }),
        Operation.manageSellOffer(offer),
        Operation.createPassiveSellOffer({ ...offer, selling: native, buying: usdcAsset }),
        Operation.createClaimableBalance({
          asset: usdcAsset,
          amount: "0.0000001",
          claimants: [new Claimant(anna.publicKey())]
        })
      ])
        expect(yield* codeOf(boris, operation)).toBe(FROZEN)
      expect(yield* codeOf(anna, pay(boris, usdcAsset))).toBe(FROZEN)
      const convert = { sendAsset: native, sendAmount: "1", destMin: "0.1", destAsset: usdcAsset, path: [] }
      expect(yield* codeOf(anna, Operation.pathPaymentStrictSend({ ...convert, destination: boris.publicKey() }))).toBe(
        FROZEN
      )
      const issuer = usdcAsset.getIssuer()!
      const flags = { trustor: boris.publicKey(), asset: usdcAsset, flags: { authorized: true }, source: issuer }
      expect(yield* codeOf(anna, Operation.setTrustLineFlags(flags), [anna, admin])).toBe(FROZEN)
      expect((yield* apply(yield* transaction(boris, [pay(anna, native)]))).code).toBe("txSuccess")
    })
  )

  frozen(
    "refuses a footprint with a frozen trustline",
    [lineOf(boris)],
    Effect.fnUntraced(function* () {
      const key = xdr.LedgerKey.fromXdr(Buffer.from(lineOf(boris), "latin1"))
      const sorobanData = new SorobanDataBuilder().setReadWrite([key]).setResources(1, 1_000, 1_000).build()
      const tx = yield* transaction(anna, [Operation.restoreFootprint({})], {
        fee: "900000000",
        configure: (builder) => builder.setSorobanData(sorobanData).setTimeout(0)
      })
      expect((yield* send(tx)).code).toBe("txSorobanInvalid")
      const paid = new SorobanDataBuilder(sorobanData).setResourceFee(100_000_000n).build()
      const other = yield* transaction(anna, [Operation.restoreFootprint({})], {
        fee: "900000000",
        configure: (builder) => builder.setSorobanData(paid).setTimeout(0)
      })
      expect((yield* send(other)).code).toBe(FROZEN)
    })
  )
})
