// Shared by the tests of classic operations: the result and the events of an operation in one transaction, issuers with
// their assets, and ledger entries.
import { Effect } from "effect"
import {
  Asset,
  getLiquidityPoolId,
  type Keypair,
  LiquidityPoolAsset,
  LiquidityPoolFeeV18,
  Operation,
  scValToNative,
  xdr
} from "@stellar/stellar-sdk"
import { it } from "@effect/vitest"
import type { Crypto } from "../../../../kernel/platform/Crypto.ts"
import { LocalLedger, type LocalLedgerOptions } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { accountKey, keyString, trustLineKey } from "../../../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import {
  accountStrKey,
  type LedgerEntryData,
  type LedgerKey,
  type PublicKey,
  publicKey,
  type TrustLineAsset
} from "../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { apply, fund, ledgerLayer, operationCode, transaction } from "../support.ts"

export type Needs = LocalLedger | Crypto

export const native = Asset.native()

export const test = (name: string, run: Effect.Effect<void, unknown, Needs>, options: LocalLedgerOptions = {}) =>
  it.effect(name, () => run.pipe(Effect.provide(ledgerLayer(options))))

const eventsOf = (meta: xdr.TransactionMeta | undefined, index: number): ReadonlyArray<ReadonlyArray<unknown>> =>
  ((meta?.value as any)?.operations?.[index]?.events ?? []).map((event: any) => [
    ...event.body.v0.topics.map(scValToNative),
    scValToNative(event.body.v0.data)
  ])

/** Applies operations in one transaction; the codes, the last one's result and every event. */
export const together = Effect.fnUntraced(function* (
  source: Keypair,
  operations: ReadonlyArray<xdr.Operation>,
  signers: ReadonlyArray<Keypair> = [source]
) {
  const { result, meta, code } = yield* apply(yield* transaction(source, operations, { signers }))
  const last = (result?.result as any)?.results?.at(-1)?.tr?.value
  return {
    transaction: code,
    codes: operations.map((_, i) => operationCode(result, i)),
    last: last?.toXdrObject?.() as any,
    events: operations.flatMap((_, i) => eventsOf(meta, i))
  }
})

/** Applies one operation. */
export const done = Effect.fnUntraced(function* (
  source: Keypair,
  operation: xdr.Operation,
  signers: ReadonlyArray<Keypair> = [source]
) {
  const { transaction: whole, codes, last, events } = yield* together(source, [operation], signers)
  return { code: codes[0] ?? whole, result: last, events }
})

export const code = (source: Keypair, operation: xdr.Operation, signers: ReadonlyArray<Keypair> = [source]) =>
  Effect.map(done(source, operation, signers), (answer) => answer.code)

/** An asset of a funded issuer with these account flags. */
export const issue = Effect.fnUntraced(function* (name: string, assetCode: string, flags = 0) {
  const issuer = yield* fund(name)
  if (flags !== 0) yield* done(issuer, Operation.setOptions({ setFlags: flags as any }))
  return { issuer, asset: new Asset(assetCode, issuer.publicKey()) }
})

/** Opens the holder's line and pays it an amount from the issuer. */
export const give = Effect.fnUntraced(function* (issuer: Keypair, holder: Keypair, asset: Asset, amount: string) {
  yield* done(holder, Operation.changeTrust({ asset }))
  yield* done(issuer, Operation.payment({ destination: holder.publicKey(), asset, amount }))
})

/** The current entries of one kind in the ledger. */
export const entriesOf = <Type extends LedgerEntryData["type"]>(type: Type) =>
  Effect.map(LocalLedger, ({ ledger }) =>
    [...ledger.store.entries()].flatMap(({ data, ext }) =>
      data.type === type
        ? [
            {
              data: data as Extract<LedgerEntryData, { type: Type }>,
              sponsor: ext.v === 1 ? ext.v1.sponsoringId : undefined
            }
          ]
        : []
    )
  )

const idOf = (caller: Keypair): PublicKey => publicKey(caller.rawPublicKey())

const entry = (key: LedgerKey) => Effect.map(LocalLedger, ({ ledger }) => ledger.store.get(keyString(key)))

/** An account's counts of subentries and sponsored reserves. */
export const counts = Effect.fnUntraced(function* (caller: Keypair) {
  const { account } = (yield* entry(accountKey(idOf(caller))))!.data as Extract<LedgerEntryData, { type: 0 }>
  const v2 = account.ext.v === 1 && account.ext.v1.ext.v === 2 ? account.ext.v1.ext.v2 : undefined
  return {
    balance: account.balance,
    subentries: account.numSubEntries,
    sponsoring: v2?.numSponsoring ?? 0,
    sponsored: v2?.numSponsored ?? 0,
    signerSponsors: (v2?.signerSponsoringIDs ?? []).map((id) => (id === null ? null : accountStrKey(id)))
  }
})

/** The trustline of an issued asset, or of a pool's shares by its id. */
export const lineOf = Effect.fnUntraced(function* (caller: Keypair, of: Asset | Uint8Array) {
  const asset: TrustLineAsset =
    of instanceof Uint8Array ? { type: 3, liquidityPoolId: of } : of.toTrustLineXdrObject().toXdrObject()
  const found = (yield* entry(trustLineKey(idOf(caller), asset)))?.data
  return found?.type === 1 ? found.trustLine : undefined
})

/** Lets the account pay down to exactly its minimum balance, and `stroops` more. */
export const drain = Effect.fnUntraced(function* (caller: Keypair, to: string, stroops = 0n) {
  const { ledger } = yield* LocalLedger
  const { balance, subentries, sponsoring, sponsored } = yield* counts(caller)
  const kept = BigInt(2 + subentries + sponsoring - sponsored) * ledger.options.settings.baseReserveStroops
  const amount = balance - kept - stroops - 100n
  yield* done(
    caller,
    Operation.payment({
      destination: to,
      asset: native,
      amount: `${amount / 10_000_000n}.${String(amount % 10_000_000n).padStart(7, "0")}`
    })
  )
})

/** The operation with parts of its body replaced by values that the SDK refuses to build. */
export const withBody = (operation: xdr.Operation, parts: object): xdr.Operation => {
  const wire = operation.toXdrObject() as any
  const [field] = Object.keys(wire.body).filter((name) => name !== "type")
  return xdr.Operation.fromXdrObject({ ...wire, body: { ...wire.body, [field!]: { ...wire.body[field!], ...parts } } })
}

/** The shares of the pool that trades two assets, whichever comes first. */
export const sharesOf = (one: Asset, other: Asset): LiquidityPoolAsset => {
  const [a, b] = Asset.compare(one, other) < 0 ? [one, other] : [other, one]
  return new LiquidityPoolAsset(a, b, LiquidityPoolFeeV18)
}

export const poolId = (shares: LiquidityPoolAsset): Buffer =>
  Buffer.from(getLiquidityPoolId("constant_product", shares.getLiquidityPoolParameters()))
