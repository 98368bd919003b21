// A buyer's part of one payment on the embedded ledger, with the same steps as a real buyer: simulate the transfer,
// sign the one required authorization, simulate again with the signature for the resources. The facilitator pays the
// fee and replaces the source. The keys are generated for this payment and discarded.
import {
  Account,
  Address,
  authorizeEntry,
  Contract,
  Keypair,
  nativeToScVal,
  Operation,
  SorobanDataBuilder,
  TransactionBuilder,
  xdr
} from "@stellar/stellar-sdk/base"
import { Effect, Schema } from "effect"
import type { LocalLedger } from "../ledger-local/contract.ts"

/** The embedded ledger refuses, or plays an injected fault. */
class LedgerRefuses extends Schema.TaggedError<LedgerRefuses>()("LedgerRefuses", { message: Schema.String }) {}

export interface Terms {
  readonly asset: string
  /** Atomic units. */
  readonly amount: string
  readonly payTo: string
  readonly maxTimeoutSeconds: number
}

/** Placeholder source account until the facilitator replaces it with a leased channel. */
const nullAccount = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"

/**
 * Number of ledgers in a time span, as an honest client counts them: with five seconds each or the measured interval in
 * whole seconds. The embedded ledger closes more often, and a payment must live as long as its terms require.
 */
export const ledgersOf = (seconds: number, secondsPerLedger: number): number =>
  Math.ceil(seconds / Math.min(5, Math.max(1, Math.ceil(secondsPerLedger * paceTolerance))))

/** Allows a measured interval to be up to 5 % too long. */
const paceTolerance = 0.95

const ask = Effect.fnUntraced(function* (ledger: LocalLedger["Service"], method: string, params: unknown) {
  const unanswered = () => new LedgerRefuses({ message: "the embedded ledger does not answer" })
  const response = yield* Effect.mapError(ledger.rpc({ jsonrpc: "2.0", id: 1, method, params }), unanswered)
  return "result" in response ? (response.result as any) : yield* unanswered()
})

const simulate = Effect.fnUntraced(function* (ledger: LocalLedger["Service"], transaction: string) {
  const simulated = yield* ask(ledger, "simulateTransaction", { transaction })
  return simulated.error === undefined
    ? simulated
    : yield* new LedgerRefuses({ message: String(simulated.error).split("\n")[0]! })
})

/** The signed transaction of a payment by these terms, in base64. */
export const signPayment = Effect.fn("demo.signPayment")(function* (
  ledger: LocalLedger["Service"],
  buyer: Keypair,
  { amount, asset, maxTimeoutSeconds, payTo }: Terms,
  secondsPerLedger: number
) {
  const networkPassphrase = ledger.passphrase
  const transfer = new Contract(asset).call(
    "transfer",
    new Address(buyer.publicKey()).toScVal(),
    new Address(payTo).toScVal(),
    nativeToScVal(BigInt(amount), { type: "i128" })
  )
  const around = (operation: xdr.Operation) =>
    new TransactionBuilder(new Account(nullAccount, "0"), { fee: "100", networkPassphrase }).addOperation(operation)
  const recorded = yield* simulate(ledger, around(transfer).setTimeout(300).build().toXDR())
  const entries = (recorded.results?.[0]?.auth ?? []) as ReadonlyArray<string>
  const until = Number(recorded.latestLedger) + ledgersOf(maxTimeoutSeconds, secondsPerLedger)
  const auth = yield* Effect.promise(() =>
    Promise.all(
      entries.map((entry) =>
        authorizeEntry(xdr.SorobanAuthorizationEntry.fromXdr(entry, "base64"), buyer, until, networkPassphrase)
      )
    )
  )
  const draft = around(transfer).setTimeout(300).build().operations[0] as unknown as { readonly func: xdr.HostFunction }
  const signed = () => around(Operation.invokeHostFunction({ func: draft.func, auth })).setTimeout(300)
  const enforced = yield* simulate(ledger, signed().build().toXDR())
  const data = new SorobanDataBuilder(enforced.transactionData as string).build()
  return signed().setSorobanData(data).build().toXDR()
})
