// One payment, built and signed (S213): the authorization is made known before anybody is asked to sign it, the
// signature is checked whoever gave it, and the ledger is asked whether the transfer would go through. The envelope's
// source is the all-zero account that every facilitator replaces; nobody signs it.
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect } from "effect"
import type { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { Authorization } from "../budget/Reservation.ts"
import { fault, type ToolFault } from "../ToolFault.ts"
import { callOf, entryWith, isSignedAs, payloadOf, signatureValue, type Transfer } from "./authorization.ts"
import type { Payer } from "./Payer.ts"

/** Seconds that a ledger is reckoned with, as every x402 client does. */
const secondsPerLedger = 5
const envelopeSeconds = 300n
const baseFeeStroops = 100

export interface BuildOptions {
  readonly crypto: Crypto["Service"]
  readonly rpc: LedgerRpc["Service"]
  readonly payer: Payer
  readonly passphrase: string
}

const ledgerAway = fault("UPSTREAM_TIMEOUT", "the ledger cannot be asked now")
const refusedBySigner = (message: string) => fault("PAYMENT_REJECTED", message)

export interface Built {
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

/** `onAuthorization` runs before anything is signed; when it fails, nothing is. */
export const makeBuildPayment = ({ crypto, passphrase, payer, rpc }: BuildOptions) =>
  Effect.fn("Payer.build")(function* (
    transfer: Transfer & { readonly maxTimeoutSeconds: number },
    onAuthorization: (authorization: Authorization) => Effect.Effect<void, ToolFault>
  ): Effect.fn.Return<Built, ToolFault> {
    const address = yield* payer.address
    if (address === transfer.payTo) return yield* refusedBySigner("the recipient is the payer")
    const { closedAtSeconds, sequence } = yield* Effect.mapError(rpc.latestLedger, () => ledgerAway)
    const authorization: Authorization = {
      payer: address,
      nonce: new DataView(Uint8Array.from(crypto.randomBytes(8)).buffer).getBigInt64(0),
      expirationLedger: sequence + Math.ceil(transfer.maxTimeoutSeconds / secondsPerLedger)
    }
    const unsigned = yield* Effect.try({
      try: () => entryWith(transfer, authorization, xdr.ScVal.scvVoid()),
      catch: () => refusedBySigner("the terms name an address that is none")
    })
    const payload = payloadOf(crypto, unsigned, authorization.expirationLedger, passphrase)
    yield* onAuthorization(authorization)
    const signedXdr = yield* payer.sign({
      entryXdr: unsigned.toXdr(),
      payload,
      around: (publicKey, signature) => entryWith(transfer, authorization, signatureValue(publicKey, signature)).toXdr()
    })
    if (!isSignedAs(crypto, transfer, authorization, payload, signedXdr))
      return yield* refusedBySigner("the signer did not sign what it was asked to")

    const operation = new xdr.Operation({
      sourceAccount: null,
      body: xdr.OperationBody.invokeHostFunction(
        new xdr.InvokeHostFunctionOp({
          hostFunction: xdr.HostFunction.hostFunctionTypeInvokeContract(callOf(transfer, address)),
          auth: [xdr.SorobanAuthorizationEntry.fromXdr(signedXdr)]
        })
      )
    })
    // By the ledger's time: this machine's clock may be wrong.
    const timeMax = BigInt(closedAtSeconds) + envelopeSeconds
    const simulated = yield* Effect.mapError(rpc.simulate(envelopeOf(operation, timeMax)), () => ledgerAway)
    if (simulated._tag !== "Simulated") {
      return yield* fault("PAYMENT_REJECTED", "the ledger would refuse this payment", {
        reason: simulated._tag === "Refused" ? simulated.code : "restore_required"
      })
    }
    const data = xdr.SorobanTransactionData.fromXdr(simulated.sorobanDataXdr)
    return {
      transaction: envelopeOf(operation, timeMax, { data, feeStroops: simulated.resourceFeeStroops }),
      authorization
    }
  })
