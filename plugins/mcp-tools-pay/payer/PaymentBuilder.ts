// Builds and signs one payment (S213): the authorization is recorded before the signer is asked, every signature is
// verified, and the transfer is simulated. The envelope's source is the all-zero account, which every facilitator
// replaces; it carries no signature.
import { xdr } from "@stellar/stellar-sdk/base"
import { Context, Effect, Layer } from "effect"
import { Network } from "../../../kernel/config/Network.ts"
import { type LatestLedger, LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { Authorization } from "../budget/Reservation.ts"
import { toolError, type ToolError } from "../../mcp-tools/contract.ts"
import { callOf, entryWith, isSignedAs, payloadOf, signatureValue, type Transfer } from "./authorization.ts"
import { Payer } from "./Payer.ts"
import { ledgersOf } from "./proveSpent.ts"

const envelopeSeconds = 300n
const baseFeeStroops = 100

const ledgerUnavailable = toolError("UPSTREAM_TIMEOUT", "the ledger is unavailable; retry later")
const refusedBySigner = (message: string) => toolError("PAYMENT_REJECTED", message)

interface Built {
  /** base64 XDR of the envelope. */
  readonly transaction: string
  readonly authorization: Authorization
}

const envelopeOf = (
  operation: xdr.Operation,
  timeMax: bigint,
  resources?: { readonly data: xdr.SorobanTransactionData; readonly feeStroops: bigint }
): string =>
  xdr.TransactionEnvelope.envelopeTypeTx(
    new xdr.TransactionV1Envelope({
      tx: new xdr.Transaction({
        sourceAccount: xdr.MuxedAccount.keyTypeEd25519(new Uint8Array(32)),
        fee: baseFeeStroops + Number(resources?.feeStroops ?? 0n),
        seqNum: 1n,
        cond: xdr.Preconditions.precondTime(new xdr.TimeBounds({ minTime: 0n, maxTime: timeMax })),
        memo: xdr.Memo.memoNone(),
        operations: [operation],
        ext: resources === undefined ? xdr.TransactionExt.v0() : xdr.TransactionExt.sorobanData(resources.data)
      }),
      signatures: []
    })
  ).toXdr("base64")

interface PaymentInput extends Transfer {
  readonly maxTimeoutSeconds: number
}

const operationOf = (transfer: Transfer, payer: string, signedXdr: Uint8Array): xdr.Operation =>
  new xdr.Operation({
    sourceAccount: null,
    body: xdr.OperationBody.invokeHostFunction(
      new xdr.InvokeHostFunctionOp({
        hostFunction: xdr.HostFunction.hostFunctionTypeInvokeContract(callOf(transfer, payer)),
        auth: [xdr.SorobanAuthorizationEntry.fromXdr(signedXdr)]
      })
    )
  })

/** Asks the payer to sign the authorization; returns the entry with the signature. */
const signed = Effect.fnUntraced(function* (
  transfer: Transfer,
  authorization: Authorization,
  protocolVersion: number,
  onAuthorization: (authorization: Authorization) => Effect.Effect<void, ToolError>
) {
  const crypto = yield* Crypto
  const payer = yield* Payer
  const written = { ...authorization, protocolVersion }
  const { passphrase } = yield* Network
  const unsigned = yield* Effect.try({
    try: () => entryWith(transfer, written, xdr.ScVal.scvVoid()),
    catch: () => refusedBySigner("the terms contain an invalid address")
  })
  const payload = payloadOf(crypto, unsigned, authorization.expirationLedger, passphrase)
  yield* onAuthorization(authorization)
  const signedXdr = yield* payer.sign({
    entryXdr: unsigned.toXdr(),
    payload,
    around: (publicKey, signature) => entryWith(transfer, written, signatureValue(publicKey, signature)).toXdr()
  })
  return isSignedAs(crypto, yield* payer.key, transfer, written, payload, signedXdr)
    ? signedXdr
    : yield* refusedBySigner("the signer's signature does not match the request")
})

const build = Effect.fn("Payer.build")(function* (
  transfer: PaymentInput,
  { closedAtSeconds, protocolVersion, sequence }: LatestLedger,
  onAuthorization: (authorization: Authorization) => Effect.Effect<void, ToolError>
) {
  const crypto = yield* Crypto
  const rpc = yield* LedgerRpc
  const payer = yield* (yield* Payer).address
  if (payer === transfer.payTo) return yield* refusedBySigner("the recipient is the payer")
  const authorization: Authorization = {
    payer,
    nonce: new DataView(Uint8Array.from(crypto.randomBytes(8)).buffer).getBigInt64(0),
    expirationLedger: sequence + ledgersOf(transfer.maxTimeoutSeconds)
  }
  const entry = yield* signed(transfer, authorization, protocolVersion, onAuthorization)
  const operation = operationOf(transfer, payer, entry)
  // In ledger time, since this machine's clock may be wrong.
  const timeMax = BigInt(closedAtSeconds) + envelopeSeconds
  const simulated = yield* Effect.mapError(rpc.simulate(envelopeOf(operation, timeMax)), () => ledgerUnavailable)
  if (simulated._tag !== "Simulated") {
    // An agent cannot mend this, but its person can.
    const why = payer.startsWith("C") ? ": see its spending account by tollkeeper agent account show" : ""
    return yield* toolError("PAYMENT_REJECTED", `the ledger would refuse this payment${why}`, {
      reason: simulated._tag === "Refused" ? simulated.code : "restore_required"
    })
  }
  const data = xdr.SorobanTransactionData.fromXdr(simulated.sorobanDataXdr)
  const transaction = envelopeOf(operation, timeMax, { data, feeStroops: simulated.resourceFeeStroops })
  return { transaction, authorization } satisfies Built
})

export class PaymentBuilder extends Context.Service<
  PaymentBuilder,
  {
    /** The ledger on which a payment is built; its day counts for the budget. */
    readonly latestLedger: Effect.Effect<LatestLedger, ToolError>
    /** `onAuthorization` runs before anything is signed; if it fails, nothing is signed. */
    readonly build: (
      transfer: PaymentInput,
      ledger: LatestLedger,
      onAuthorization: (authorization: Authorization) => Effect.Effect<void, ToolError>
    ) => Effect.Effect<Built, ToolError>
  }
>()("tollkeeper/mcp-tools-pay/PaymentBuilder") {
  static readonly layer = Layer.effect(
    PaymentBuilder,
    Effect.gen(function* () {
      const parts = yield* Effect.context<Crypto | LedgerRpc | Network | Payer>()
      const { latestLedger } = yield* LedgerRpc
      return PaymentBuilder.of({
        latestLedger: Effect.mapError(latestLedger, () => ledgerUnavailable),
        build: (transfer, ledger, onAuthorization) =>
          Effect.provideContext(build(transfer, ledger, onAuthorization), parts)
      })
    })
  )
}
