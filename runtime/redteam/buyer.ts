// A buyer for tests. It builds and signs an `exact` payment as the official client does (unsigned envelope, all-zero
// source, sequence 1, one signed authorization entry; reference section 3.2) and returns the JSON that a seller would
// send to `/verify` and `/settle`. Every step has a hook in `tamper`, so that one function makes both the honest
// payment and the attack. It does not sleep or retry: one `getLatestLedger` and at most one `simulateTransaction`, none
// without `rpc`.
import { Address, Keypair, nativeToScVal, Networks, xdr } from "@stellar/stellar-sdk"
import {
  addressOf,
  callOf,
  type CredentialVariant,
  invocationOf,
  type Payer,
  signAuthorization
} from "./authorization.ts"
import { type RpcCall, rpcCall } from "./rpcCall.ts"

/** The USDC of the test network, which the local ledger's genesis also contains (7 decimals). */
export const testnetUsdc = "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA"

/** The all-zero account that the official client writes as the source of its envelope. */
export const nullAccount = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"

type TransactionFields = ConstructorParameters<typeof xdr.Transaction>[0]

/** Context for a change to the authorization entries. */
export interface AuthorizationContext {
  readonly payer: Payer
  readonly call: xdr.InvokeContractArgs
  readonly nonce: bigint
  readonly latestLedger: number
  readonly expirationLedger: number
  readonly networkPassphrase: string
}

/** Deviations from the honest payment; absent members stay honest. */
export interface PaymentTamper {
  /** Changes the transaction's call without the requirements. */
  readonly from?: string
  readonly to?: string
  readonly amount?: bigint
  readonly contract?: string
  readonly functionName?: string
  readonly args?: (args: ReadonlyArray<xdr.ScVal>) => ReadonlyArray<xdr.ScVal>
  /** The authorization entry. */
  readonly credentials?: CredentialVariant
  readonly authAddress?: string
  readonly signers?: ReadonlyArray<Keypair>
  readonly signature?: (signature: Uint8Array) => Uint8Array
  readonly signatureValue?: (value: xdr.ScVal, payload: Uint8Array) => xdr.ScVal
  readonly signedPassphrase?: string
  readonly signedCall?: (call: xdr.InvokeContractArgs) => xdr.InvokeContractArgs
  readonly subInvocations?: ReadonlyArray<xdr.SorobanAuthorizedInvocation>
  readonly nonce?: bigint
  /** Ledgers added to the honest expiry; negative for an earlier expiry. */
  readonly expiryOffset?: number
  readonly expirationLedger?: number
  readonly authEntries?: (
    entries: ReadonlyArray<xdr.SorobanAuthorizationEntry>,
    context: AuthorizationContext
  ) => ReadonlyArray<xdr.SorobanAuthorizationEntry>
  /** Changes the transaction around the authorization. */
  readonly source?: string
  readonly operationSource?: string
  readonly hostFunction?: (honest: xdr.HostFunction) => xdr.HostFunction
  readonly operations?: (operations: ReadonlyArray<xdr.Operation>) => ReadonlyArray<xdr.Operation>
  readonly transaction?: (fields: TransactionFields) => TransactionFields
  readonly envelope?: (envelope: xdr.TransactionEnvelope) => xdr.TransactionEnvelope
  readonly base64?: (base64: string) => string
  /** Changes the JSON around the transaction. */
  readonly requirements?: (requirements: any) => any
  readonly accepted?: (accepted: any) => any
  readonly payload?: (payload: any) => any
}

export interface PaymentOptions {
  /** A ledger to ask: its URL or a caller. Without one, `latestLedger` is required and nothing is simulated. */
  readonly rpc?: string | RpcCall
  readonly latestLedger?: number
  /** Default: the test network's, which the local ledger shares. */
  readonly networkPassphrase?: string
  /** The network's name on the wire, default `ledger:testnet`. */
  readonly network?: string
  readonly payer: Payer
  readonly payTo: string
  /** Default USDC of the test network. */
  readonly asset?: string
  /** Atomic units. */
  readonly amount: bigint
  /** Default 60. */
  readonly maxTimeoutSeconds?: number
  /** Seconds per ledger that the buyer assumes, default 5. */
  readonly secondsPerLedger?: number
  /** Start of the envelope's five minutes, in seconds since the epoch; default the machine's clock. */
  readonly nowSeconds?: number
  readonly resourceUrl?: string
  readonly extensions?: Record<string, unknown>
  readonly tamper?: PaymentTamper
}

/** A payment as a seller passes it on, with further data for checks. */
export interface Payment {
  readonly x402Version: 2
  readonly paymentPayload: any
  readonly paymentRequirements: any
  /** The body of `/verify` and `/settle`. */
  readonly body: { readonly x402Version: 2; readonly paymentPayload: any; readonly paymentRequirements: any }
  readonly transaction: string
  readonly nonce: bigint
  readonly expirationLedger: number
  /** The ledger's error for the signed call, if it was simulated and refused. */
  readonly simulationError: string | undefined
}

const randomNonce = (): bigint => new DataView(Keypair.random().rawPublicKey().slice().buffer).getBigInt64(0)

const muxed = (address: string): xdr.MuxedAccount =>
  address.startsWith("M")
    ? xdr.MuxedAccount.fromXdrObject(muxedWire(address))
    : xdr.MuxedAccount.keyTypeEd25519(Keypair.fromPublicKey(address).rawPublicKey())

const muxedWire = (address: string): xdr.MuxedAccountWire => {
  const value = new Address(address).toScAddress().toXdrObject()
  if (!("muxedAccount" in value)) throw new Error(`${address} is not a muxed account`)
  return { type: 256, med25519: value.muxedAccount }
}

/** Resource data for a call without a simulation: it can be decoded, but not executed. */
const substituteData = (call: xdr.InvokeContractArgs): xdr.SorobanTransactionData =>
  new xdr.SorobanTransactionData({
    ext: xdr.SorobanTransactionDataExt.v0(),
    resources: new xdr.SorobanResources({
      footprint: new xdr.LedgerFootprint({
        readOnly: [
          xdr.LedgerKey.contractData(
            new xdr.LedgerKeyContractData({
              contract: call.contractAddress,
              key: xdr.ScVal.scvLedgerKeyContractInstance(),
              durability: xdr.ContractDataDurability.persistent
            })
          )
        ],
        readWrite: []
      }),
      instructions: 2_000_000,
      diskReadBytes: 1_000,
      writeBytes: 1_000
    }),
    resourceFee: 40_000n
  })

const signCall = (options: PaymentOptions, latestLedger: number) => {
  const tamper = options.tamper ?? {}
  const networkPassphrase = options.networkPassphrase ?? Networks.TESTNET
  const nonce = tamper.nonce ?? randomNonce()
  const timeoutLedgers = Math.ceil((options.maxTimeoutSeconds ?? 60) / (options.secondsPerLedger ?? 5))
  const honestExpiry = latestLedger + timeoutLedgers + (tamper.expiryOffset ?? 0)
  const expirationLedger = tamper.expirationLedger ?? Math.max(0, honestExpiry)
  const honestArgs = [
    new Address(tamper.from ?? addressOf(options.payer)).toScVal(),
    new Address(tamper.to ?? options.payTo).toScVal(),
    nativeToScVal(tamper.amount ?? options.amount, { type: "i128" })
  ]
  const call = callOf(
    tamper.contract ?? options.asset ?? testnetUsdc,
    tamper.functionName ?? "transfer",
    tamper.args === undefined ? honestArgs : tamper.args(honestArgs)
  )
  const entry = signAuthorization({
    payer: options.payer,
    invocation: invocationOf(tamper.signedCall?.(call) ?? call, tamper.subInvocations),
    nonce,
    expirationLedger,
    networkPassphrase: tamper.signedPassphrase ?? networkPassphrase,
    credentials: tamper.credentials,
    address: tamper.authAddress,
    signers: tamper.signers,
    signature: tamper.signature,
    signatureValue: tamper.signatureValue
  })
  const context = { payer: options.payer, call, nonce, latestLedger, expirationLedger, networkPassphrase }
  return { auth: [...(tamper.authEntries?.([entry], context) ?? [entry])], call, nonce, expirationLedger }
}

type SignedCall = ReturnType<typeof signCall>

/** The unsigned envelope around a signed call. */
const envelopeOf = (
  { nowSeconds = Math.floor(Date.now() / 1000), tamper = {} }: PaymentOptions,
  { auth, call }: SignedCall,
  fee: number,
  data: xdr.SorobanTransactionData
): xdr.TransactionEnvelope => {
  const honestFunction = xdr.HostFunction.hostFunctionTypeInvokeContract(call)
  const operation = new xdr.Operation({
    sourceAccount: tamper.operationSource === undefined ? null : muxed(tamper.operationSource),
    body: xdr.OperationBody.invokeHostFunction(
      new xdr.InvokeHostFunctionOp({ hostFunction: tamper.hostFunction?.(honestFunction) ?? honestFunction, auth })
    )
  })
  const fields: TransactionFields = {
    sourceAccount: muxed(tamper.source ?? nullAccount),
    fee,
    seqNum: 1n,
    cond: xdr.Preconditions.precondTime(new xdr.TimeBounds({ minTime: 0n, maxTime: BigInt(nowSeconds + 300) })),
    memo: xdr.Memo.memoNone(),
    operations: [...(tamper.operations?.([operation]) ?? [operation])],
    ext: xdr.TransactionExt.sorobanData(data)
  }
  const tx = new xdr.Transaction(tamper.transaction?.(fields) ?? fields)
  return xdr.TransactionEnvelope.envelopeTypeTx(new xdr.TransactionV1Envelope({ tx, signatures: [] }))
}

/** The JSON around a transaction. */
const documentsOf = (options: PaymentOptions, transaction: string) => {
  const tamper = options.tamper ?? {}
  const honest = {
    scheme: "exact",
    network: options.network ?? "ledger:testnet",
    amount: String(options.amount),
    asset: options.asset ?? testnetUsdc,
    payTo: options.payTo,
    maxTimeoutSeconds: options.maxTimeoutSeconds ?? 60,
    extra: { areFeesSponsored: true }
  }
  // Two separate objects, so that a change to one copy never affects the other.
  const paymentRequirements = tamper.requirements?.(structuredClone(honest)) ?? structuredClone(honest)
  const accepted = tamper.accepted?.(structuredClone(honest)) ?? structuredClone(honest)
  const honestPayload = {
    x402Version: 2,
    payload: { transaction },
    ...(options.extensions === undefined ? {} : { extensions: options.extensions }),
    resource: { url: options.resourceUrl ?? "http://127.0.0.1/weather", description: "", mimeType: "" },
    accepted
  }
  return { paymentPayload: tamper.payload?.(honestPayload) ?? honestPayload, paymentRequirements }
}

/** Builds and signs one payment. Rejects only if the ledger cannot be asked; a refused simulation is in the result. */
export const makePayment = async (options: PaymentOptions): Promise<Payment> => {
  const { tamper = {} } = options
  const rpc = typeof options.rpc === "string" ? rpcCall(options.rpc) : options.rpc
  const signed = signCall(options, options.latestLedger ?? ((await rpc!("getLatestLedger")).sequence as number))
  let envelope = envelopeOf(options, signed, 40_100, substituteData(signed.call))
  let simulationError: string | undefined
  if (rpc !== undefined) {
    const simulated = await rpc("simulateTransaction", { transaction: envelope.toXdr("base64") }).catch((error) => ({
      error: String(error)
    }))
    if (simulated.error === undefined) {
      const data = xdr.SorobanTransactionData.fromXdr(simulated.transactionData, "base64")
      envelope = envelopeOf(options, signed, 100 + Number(simulated.minResourceFee), data)
    } else simulationError = simulated.error
  }
  const base64 = (tamper.envelope?.(envelope) ?? envelope).toXdr("base64")
  const transaction = tamper.base64?.(base64) ?? base64
  const documents = documentsOf(options, transaction)
  const { expirationLedger, nonce } = signed
  const body = { x402Version: 2, ...documents } as const
  return { ...body, body, transaction, nonce, expirationLedger, simulationError }
}
