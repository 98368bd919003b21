// An `upto` payment for tests: one call of the settlement contract with the maximum as its amount, which the payer
// authorizes with the allowance and its end below it, in an unsigned envelope. Every step can be tampered with, so that
// one function makes both the honest payment and the attack. It asks the ledger only for its newest number.
import { Address, Keypair, nativeToScVal, Networks, xdr } from "@stellar/stellar-sdk"
import {
  addressOf,
  callOf,
  type CredentialVariant,
  invocationOf,
  type Payer,
  signAuthorization
} from "../../runtime/redteam/authorization.ts"
import { nullAccount, testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { type RpcCall, rpcCall } from "../../runtime/redteam/rpcCall.ts"
import { layoutOf, type UptoProfile } from "./uptoProfiles.ts"

/** Deviations from the honest payment; absent members stay honest. */
export interface UptoTamper {
  /** Changes the call that is sent and signed. */
  readonly payTo?: string
  readonly token?: string
  readonly max?: bigint
  readonly validAfter?: number
  readonly deadline?: number
  readonly facilitator?: string
  /** In seconds of the ledger's clock, for a profile with a window in seconds. */
  readonly beginsAt?: bigint
  readonly endsAt?: bigint
  readonly payerArgument?: string
  readonly contract?: string
  readonly functionName?: string
  /** The call's arguments, signed ones included. */
  readonly args?: (args: ReadonlyArray<xdr.ScVal>) => ReadonlyArray<xdr.ScVal>
  /** The amount in the envelope; the honest one is the maximum. */
  readonly sentAmount?: bigint
  /** Changes the authorization. */
  readonly signedFunctionName?: string
  readonly signedArgs?: (args: ReadonlyArray<xdr.ScVal>) => ReadonlyArray<xdr.ScVal>
  readonly subInvocations?: (
    honest: ReadonlyArray<xdr.SorobanAuthorizedInvocation>
  ) => ReadonlyArray<xdr.SorobanAuthorizedInvocation>
  readonly credentials?: CredentialVariant
  readonly authAddress?: string
  readonly signers?: ReadonlyArray<Keypair>
  readonly signature?: (signature: Uint8Array) => Uint8Array
  readonly signatureValue?: (value: xdr.ScVal) => xdr.ScVal
  readonly signedPassphrase?: string
  readonly expirationLedger?: number
  readonly nonce?: bigint
  readonly authEntries?: (
    entries: ReadonlyArray<xdr.SorobanAuthorizationEntry>
  ) => ReadonlyArray<xdr.SorobanAuthorizationEntry>
  /** Changes the envelope around it. */
  readonly source?: string
  readonly operations?: (operations: ReadonlyArray<xdr.Operation>) => ReadonlyArray<xdr.Operation>
  readonly base64?: (base64: string) => string
}

export interface UptoOptions {
  readonly rpc: string | RpcCall
  readonly payer: Payer
  readonly payTo: string
  readonly contract: string
  readonly facilitator: string
  /** Atomic units. */
  readonly max: bigint
  /** Default: our own profile; the terms then name none. */
  readonly profile?: UptoProfile
  /** Default true; only for the profile that lets the payer choose. */
  readonly autoRevoke?: boolean
  readonly asset?: string
  readonly maxTimeoutSeconds?: number
  /** Seconds per ledger that the buyer assumes, default 5. */
  readonly secondsPerLedger?: number
  readonly settlementId?: Uint8Array
  readonly network?: string
  readonly extensions?: Record<string, unknown>
  readonly resourceUrl?: string
  readonly tamper?: UptoTamper
  /** Overrides the honest members of the terms. */
  readonly extra?: Record<string, unknown>
  /** The payload of the stateless draft, as fields. */
  readonly asFields?: boolean
}

export interface UptoPayment {
  readonly paymentPayload: any
  /** The seller's terms, with the maximum. */
  readonly requirements: any
  /** The body of `/verify`. */
  readonly verifyBody: any
  /** The body of `/settle` with the used amount; may be any text, to test errors. */
  readonly settleBody: (actual: bigint | string) => any
  readonly nonce: bigint
  readonly deadline: number
}

const u32 = (value: number) => xdr.ScVal.scvU32(value)
const i128 = (value: bigint) => nativeToScVal(value, { type: "i128" })
const address = (value: string) => new Address(value).toScVal()
const randomNonce = (): bigint => new DataView(Keypair.random().rawPublicKey().slice().buffer).getBigInt64(0)

const envelopeOf = (operations: ReadonlyArray<xdr.Operation>, source: string): string =>
  xdr.TransactionEnvelope.envelopeTypeTx(
    new xdr.TransactionV1Envelope({
      tx: new xdr.Transaction({
        sourceAccount: xdr.MuxedAccount.keyTypeEd25519(Keypair.fromPublicKey(source).rawPublicKey()),
        fee: 100,
        seqNum: 1n,
        cond: xdr.Preconditions.precondNone(),
        memo: xdr.Memo.memoNone(),
        operations: [...operations],
        ext: xdr.TransactionExt.v0()
      }),
      signatures: []
    })
  ).toXdr("base64")

/** Builds and signs one payment. */
export const makeUptoPayment = async (options: UptoOptions): Promise<UptoPayment> => {
  const tamper = options.tamper ?? {}
  const rpc = typeof options.rpc === "string" ? rpcCall(options.rpc) : options.rpc
  const { closeTime, sequence: latest } = await rpc("getLatestLedger")
  const maxTimeoutSeconds = options.maxTimeoutSeconds ?? 60
  const asset = options.asset ?? testnetUsdc
  const contract = tamper.contract ?? options.contract
  const token = tamper.token ?? asset
  const deadline = tamper.deadline ?? latest + Math.ceil(maxTimeoutSeconds / (options.secondsPerLedger ?? 5))
  const max = tamper.max ?? options.max
  const payer = addressOf(options.payer)
  // A facilitator's node may be some ledgers behind the buyer's node.
  const from = BigInt(Math.max(0, Number(closeTime ?? 0) - 5))
  const terms = {
    payer: tamper.payerArgument ?? payer,
    payTo: tamper.payTo ?? options.payTo,
    token,
    max,
    validAfter: tamper.validAfter ?? latest,
    deadline,
    beginsAt: tamper.beginsAt ?? from,
    endsAt: tamper.endsAt ?? from + BigInt(maxTimeoutSeconds),
    facilitator: tamper.facilitator ?? options.facilitator,
    id: options.settlementId ?? Keypair.random().rawPublicKey(),
    autoRevoke: options.autoRevoke ?? true
  }
  const layout = layoutOf(options.profile ?? "tollkeeper", terms)
  const signedArgs = tamper.args?.(layout.signed) ?? layout.signed
  const approve = ([amount, lastLedger]: readonly [amount: bigint, lastLedger: number]) =>
    invocationOf(callOf(token, "approve", [address(payer), address(contract), i128(amount), u32(lastLedger)]))
  const functionName = tamper.functionName ?? layout.functionName
  const honestSubs = layout.approvals.map(approve)
  const nonce = tamper.nonce ?? randomNonce()
  const entry = signAuthorization({
    payer: options.payer,
    invocation: invocationOf(
      callOf(contract, tamper.signedFunctionName ?? functionName, tamper.signedArgs?.(signedArgs) ?? signedArgs),
      tamper.subInvocations?.(honestSubs) ?? honestSubs
    ),
    nonce,
    expirationLedger: tamper.expirationLedger ?? deadline,
    networkPassphrase: tamper.signedPassphrase ?? Networks.TESTNET,
    credentials: tamper.credentials,
    address: tamper.authAddress,
    signers: tamper.signers,
    signature: tamper.signature,
    signatureValue: tamper.signatureValue
  })
  const call = callOf(contract, functionName, layout.sent(signedArgs, tamper.sentAmount ?? max))
  const operation = new xdr.Operation({
    sourceAccount: null,
    body: xdr.OperationBody.invokeHostFunction(
      new xdr.InvokeHostFunctionOp({
        hostFunction: xdr.HostFunction.hostFunctionTypeInvokeContract(call),
        auth: [...(tamper.authEntries?.([entry]) ?? [entry])]
      })
    )
  })
  const base64 = envelopeOf(tamper.operations?.([operation]) ?? [operation], tamper.source ?? nullAccount)
  const fields = () => ({
    from: tamper.payerArgument ?? payer,
    payTo: tamper.payTo ?? options.payTo,
    asset: token,
    maxAmount: String(max),
    validAfter: Number(terms.beginsAt),
    deadline: Number(terms.endsAt),
    expirationLedger: deadline,
    salt: Buffer.from(terms.id).toString("hex"),
    autoRevoke: terms.autoRevoke,
    authEntries: (tamper.authEntries?.([entry]) ?? [entry]).map((one) => one.toXdr("base64"))
  })
  const requirements = {
    scheme: "upto",
    network: options.network ?? "ledger:testnet",
    amount: String(options.max),
    asset,
    payTo: options.payTo,
    maxTimeoutSeconds,
    extra: {
      areFeesSponsored: true,
      uptoContract: options.contract,
      facilitatorAddress: options.facilitator,
      ...(options.profile === undefined ? {} : { profile: options.profile }),
      ...options.extra
    }
  }
  const paymentPayload = {
    x402Version: 2,
    payload: options.asFields === true ? fields() : { transaction: tamper.base64?.(base64) ?? base64 },
    ...(options.extensions === undefined ? {} : { extensions: options.extensions }),
    resource: { url: options.resourceUrl ?? "http://127.0.0.1/metered", description: "", mimeType: "" },
    accepted: structuredClone(requirements)
  }
  const bodyWith = (amount: string) => ({
    x402Version: 2,
    paymentPayload,
    paymentRequirements: { ...structuredClone(requirements), amount }
  })
  return {
    paymentPayload,
    requirements,
    verifyBody: bodyWith(String(options.max)),
    settleBody: (actual) => bodyWith(String(actual)),
    nonce,
    deadline
  }
}
