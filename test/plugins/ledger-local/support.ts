// Shared by the tests of the embedded ledger: a ledger in memory, named keys, and transactions built and signed with
// the official SDK, which is independent of this ledger.
import { Effect, Layer } from "effect"
import {
  Account,
  Asset,
  type FeeBumpTransaction,
  Keypair,
  Networks,
  Operation,
  scValToNative,
  type Transaction,
  TransactionBuilder,
  xdr
} from "@stellar/stellar-sdk"
import { errorCodes, errorTypes } from "../../../plugins/ledger-local/engine/host/HostError.ts"
import { LocalLedger, type LocalLedgerOptions } from "../../../plugins/ledger-local/LocalLedger.ts"
import { localAccount, USDC_ISSUER } from "../../../plugins/ledger-local/node/accounts.ts"
import { layer as nodeCrypto } from "../../../runtime/platform/nodeCrypto.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"

export const passphrase = Networks.TESTNET
export const usdcAsset = new Asset("USDC", USDC_ISSUER)

export const ledgerLayer = (options: LocalLedgerOptions = {}): Layer.Layer<LocalLedger | Crypto> =>
  LocalLedger.layerTest(options).pipe(Layer.provideMerge(nodeCrypto))

/** A key that is the same in every run. */
export const keypair = (name: string): Keypair =>
  Keypair.fromRawEd25519Seed(Uint8Array.from({ length: 32 }, (_, i) => name.charCodeAt(i % name.length) ^ (i * 7)))

export const usdcAdmin = Effect.map(Crypto, (crypto) =>
  Keypair.fromSecret(localAccount(crypto, "usdc administrator").secret)
)

/** The account's current entry in the ledger. */
export const account = Effect.fnUntraced(function* (address: string) {
  const ledger = yield* LocalLedger
  const key = xdr.LedgerKey.account(
    new xdr.LedgerKeyAccount({ accountId: Keypair.fromPublicKey(address).xdrAccountId() })
  )
  const { entries } = yield* ledger.call("getLedgerEntries", { keys: [key.toXdr("base64")] })
  if (entries.length === 0) return undefined
  const data = xdr.LedgerEntryData.fromXdr(entries[0].xdr, "base64")
  return data.value as xdr.AccountEntry
})

export interface BuildOptions {
  readonly fee?: string
  readonly sequence?: bigint
  readonly signers?: ReadonlyArray<Keypair>
  readonly configure?: (builder: TransactionBuilder) => TransactionBuilder
}

/** A signed transaction of `source` with the next sequence number. */
export const transaction = Effect.fnUntraced(function* (
  source: Keypair,
  operations: ReadonlyArray<xdr.Operation>,
  options: BuildOptions = {}
) {
  const known = yield* account(source.publicKey())
  const sequence = options.sequence === undefined ? (known?.seqNum ?? 0n) : options.sequence - 1n
  let builder = new TransactionBuilder(new Account(source.publicKey(), sequence.toString()), {
    fee: options.fee ?? "100",
    networkPassphrase: passphrase
  })
  for (const operation of operations) builder = builder.addOperation(operation)
  builder = options.configure === undefined ? builder.setTimeout(0) : options.configure(builder)
  const built = builder.build()
  for (const signer of options.signers ?? [source]) built.sign(signer)
  return built
})

/** `fee` is per operation; a bump counts one operation more than its inner transaction. */
export const feeBump = (
  payer: Keypair,
  fee: string,
  inner: Transaction,
  signers: ReadonlyArray<Keypair> = [payer]
): FeeBumpTransaction => {
  const bump = TransactionBuilder.buildFeeBumpTransaction(payer, fee, inner, passphrase)
  for (const signer of signers) bump.sign(signer)
  return bump
}

const base64 = (tx: Transaction | FeeBumpTransaction): string => tx.toEnvelope().toXdr("base64")

/** Sends a transaction, and decodes a refusal. */
export const send = Effect.fnUntraced(function* (tx: Transaction | FeeBumpTransaction) {
  const ledger = yield* LocalLedger
  const answer = yield* ledger.call("sendTransaction", { transaction: base64(tx) })
  const error =
    answer.errorResultXdr === undefined ? undefined : xdr.TransactionResult.fromXdr(answer.errorResultXdr, "base64")
  return { ...answer, code: error?.result.type as string | undefined, error } as {
    readonly status: string
    readonly hash: string
    readonly code: string | undefined
    readonly error: xdr.TransactionResult | undefined
    readonly diagnosticEventsXdr?: ReadonlyArray<string>
  }
})

/** Sends, closes a ledger, and returns the outcome. */
export const apply = Effect.fnUntraced(function* (tx: Transaction | FeeBumpTransaction) {
  const ledger = yield* LocalLedger
  const sent = yield* send(tx)
  if (sent.status !== "PENDING")
    return {
      status: sent.status,
      code: sent.code,
      result: sent.error,
      meta: undefined,
      raw: undefined,
      refusal: sent.diagnosticEventsXdr
    }
  yield* ledger.close
  const raw = yield* ledger.call("getTransaction", { hash: sent.hash })
  const result = raw.resultXdr === undefined ? undefined : xdr.TransactionResult.fromXdr(raw.resultXdr, "base64")
  const meta = raw.resultMetaXdr === undefined ? undefined : xdr.TransactionMeta.fromXdr(raw.resultMetaXdr, "base64")
  const code = result?.result.type as string | undefined
  return { status: raw.status as string, code, result, meta, raw, refusal: undefined }
})

/** The inner code of an operation's result, such as `paymentUnderfunded`, or the outer one, such as `opBadAuth`. */
export const operationCode = (result: xdr.TransactionResult | undefined, index = 0): string | undefined => {
  const value = result?.result as any
  const results = (value?.results ?? value?.innerResultPair?.result?.result?.results) as ReadonlyArray<any> | undefined
  const one = results?.[index]
  if (one === undefined) return undefined
  return one.type === "opInner" ? one.tr.value.type : one.type
}

/** Diagnostic events in base64 as text, a line each: the error, its message and the values it names. */
export const reportedBy = (events: ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  (events ?? []).map((base64) => {
    const { topics, data } = xdr.DiagnosticEvent.fromXdr(base64, "base64").event.body.v0
    const error = topics[1]!.toXdrObject() as { error?: { type: number; code: number } }
    const [type, code] = [errorTypes[error.error?.type ?? -1], errorCodes[error.error?.code ?? -1]]
    return [`Error(${type}, ${code})`, ...[scValToNative(data)].flat()].join(" ")
  })

export const fund = Effect.fnUntraced(function* (name: string, usdcUnits?: bigint) {
  const ledger = yield* LocalLedger
  const key = keypair(name)
  yield* Effect.orDie(ledger.fund(key.publicKey(), usdcUnits === undefined ? {} : { usdcUnits }))
  return key
})

export { Operation }
