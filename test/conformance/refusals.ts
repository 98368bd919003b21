// Changed payments, each with its expected reason of refusal. A case takes an honest body of `/settle` and changes one
// thing: the seller's terms, the terms that the buyer accepted, or a bit of the buyer's signed data. The reasons are in
// the neutral spelling; `inDialect` converts them to the spelling of a body's network.
import { Address, nativeToScVal, xdr } from "@stellar/stellar-sdk"

export interface Refusal {
  readonly change: string
  /** Changes a copy of an honest body; `stranger` is a funded account that has no part in the payment. */
  readonly apply: (body: any, stranger: string) => any
  /** The accepted neutral reasons; the first is the expected one. */
  readonly reasons: ReadonlyArray<string>
}

/** Native XLM as a contract on the test network; the local profile allows it as an asset. */
export const nativeContract = "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC"

/** A contract address that no profile lists. */
const unlistedContract = "CAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABSC4"

/** A copy through JSON: unlike `structuredClone` it never keeps two copies of the terms as one object. */
const copyOf = (body: any): any => JSON.parse(JSON.stringify(body))

const both = (change: (terms: any, stranger: string) => void) => (body: any, stranger: string) => {
  const copy = copyOf(body)
  change(copy.paymentRequirements, stranger)
  change(copy.paymentPayload.accepted, stranger)
  return copy
}

const accepted = (change: (terms: any, stranger: string) => void) => (body: any, stranger: string) => {
  const copy = copyOf(body)
  change(copy.paymentPayload.accepted, stranger)
  return copy
}

/** Changes the single contract call of an envelope, or its authorization. */
const transaction =
  (change: (call: xdr.InvokeHostFunctionOp, stranger: string) => xdr.InvokeHostFunctionOp) =>
  (body: any, stranger: string) => {
    const copy = copyOf(body)
    const envelope = xdr.TransactionEnvelope.fromXdr(copy.paymentPayload.payload.transaction, "base64")
    if (envelope.type !== "envelopeTypeTx") throw new Error("the payment is no plain transaction")
    const { tx } = envelope.v1
    const operation = tx.operations[0]!
    if (operation.body.type !== "invokeHostFunction") throw new Error("the payment calls no contract")
    const changed = new xdr.Transaction({
      ...tx,
      operations: [
        new xdr.Operation({
          sourceAccount: operation.sourceAccount,
          body: xdr.OperationBody.invokeHostFunction(change(operation.body.invokeHostFunctionOp, stranger))
        })
      ]
    })
    copy.paymentPayload.payload.transaction = xdr.TransactionEnvelope.envelopeTypeTx(
      new xdr.TransactionV1Envelope({ tx: changed, signatures: [] })
    ).toXdr("base64")
    return copy
  }

const argument = (index: number, value: (stranger: string) => xdr.ScVal) =>
  transaction(({ auth, hostFunction }, stranger) => {
    if (hostFunction.type !== "hostFunctionTypeInvokeContract") throw new Error("the payment calls no contract")
    const call = hostFunction.invokeContract
    const args = call.args.map((arg, position) => (position === index ? value(stranger) : arg))
    return new xdr.InvokeHostFunctionOp({
      hostFunction: xdr.HostFunction.hostFunctionTypeInvokeContract(new xdr.InvokeContractArgs({ ...call, args })),
      auth
    })
  })

/** Flips one bit of the 64 signature bytes, in any variant of the credentials. */
const signatureBit = (bit: number) =>
  transaction(({ auth, hostFunction }) => {
    const bytes = auth[0]!.toXdr("raw")
    const wire = xdr.SorobanAuthorizationEntry.schema
    const entry: any = wire.decode(bytes)
    const { credentials } = entry
    const address = credentials.address ?? credentials.addressV2
    const { signature } = Object.fromEntries(
      address.signature.vec[0].map.map((pair: any) => [String(pair.key.sym), pair.val.bytes])
    ) as { signature: Uint8Array }
    signature[bit >> 3]! ^= 1 << (bit & 7)
    return new xdr.InvokeHostFunctionOp({
      hostFunction,
      auth: [xdr.SorobanAuthorizationEntry.fromXdr(wire.encode(entry))]
    })
  })

const exact = "invalid_exact_ledger_payload"

export const refusals: ReadonlyArray<Refusal> = [
  { change: "a lower amount in the terms", apply: both((t) => (t.amount = "1")), reasons: [`${exact}_wrong_amount`] },
  {
    change: "a higher amount in the terms",
    apply: both((t) => (t.amount = "999999")),
    reasons: [`${exact}_wrong_amount`]
  },
  {
    change: "another recipient in the terms",
    apply: both((t, caller) => (t.payTo = caller)),
    reasons: [`${exact}_wrong_recipient`]
  },
  {
    change: "another allowed asset in the terms",
    apply: both((t) => (t.asset = nativeContract)),
    reasons: [`${exact}_wrong_asset`]
  },
  {
    change: "an asset that is not allowed",
    apply: both((t) => (t.asset = unlistedContract)),
    reasons: ["invalid_ledger_asset_not_allowed"]
  },
  {
    change: "another amount accepted than asked",
    apply: accepted((t) => (t.amount = "1")),
    reasons: ["requirements_mismatch"]
  },
  {
    change: "another recipient accepted than asked",
    apply: accepted((t, party) => (t.payTo = party)),
    reasons: ["requirements_mismatch"]
  },
  {
    change: "another asset accepted than asked",
    apply: accepted((t) => (t.asset = nativeContract)),
    reasons: ["requirements_mismatch"]
  },
  {
    change: "another timeout accepted than asked",
    apply: accepted((t) => (t.maxTimeoutSeconds += 1)),
    reasons: ["requirements_mismatch"]
  },
  {
    change: "a timeout far below what was signed",
    apply: both((t) => (t.maxTimeoutSeconds = 1)),
    reasons: ["invalid_exact_ledger_signature_expiration_too_far"]
  },
  { change: "another scheme", apply: both((t) => (t.scheme = "subscription")), reasons: ["unsupported_scheme"] },
  {
    change: "a network that is not enabled",
    apply: both((t) => (t.network = t.network.replace("testnet", "pubnet"))),
    reasons: ["unsupported_network"]
  },
  {
    change: "a network of another family",
    apply: both((t) => (t.network = "eip155:84532")),
    reasons: ["unsupported_network"]
  },
  {
    change: "another network accepted than asked",
    apply: accepted((t) => (t.network = t.network.replace("testnet", "pubnet"))),
    reasons: ["network_mismatch"]
  },
  {
    change: "version 1 of the protocol",
    apply: (body) => ({ ...copyOf(body), x402Version: 1 }),
    reasons: ["invalid_x402_version"]
  },
  { change: "one bit of R of the signature", apply: signatureBit(7), reasons: [`${exact}_invalid_signature`] },
  { change: "one bit of S of the signature", apply: signatureBit(256 + 9), reasons: [`${exact}_invalid_signature`] },
  { change: "the last byte of the signature", apply: signatureBit(511), reasons: [`${exact}_invalid_signature`] },
  {
    change: "another amount in the call, not signed",
    apply: argument(2, () => nativeToScVal(1n, { type: "i128" })),
    reasons: [`${exact}_wrong_amount`]
  },
  {
    change: "another recipient in the call, not signed",
    apply: argument(1, (stranger) => new Address(stranger).toScVal()),
    reasons: [`${exact}_wrong_recipient`]
  },
  {
    change: "another recipient in the call and in the terms, not signed",
    apply: (body, stranger) =>
      both((t, to) => (t.payTo = to))(argument(1, (to) => new Address(to).toScVal())(body, stranger), stranger),
    reasons: [
      "invalid_ledger_enforcing_simulation_failed",
      `${exact}_missing_payer_signature`,
      `${exact}_auth_mismatch`
    ]
  }
]
