// Builds the payment that the claimer submits to the facilitator. It is a `batch-settlement` payment as a seller would
// send it, under the seller's principal, so budgets, records and receipts are the same. Its identifier is the recorded
// claim's identifier, so a repeated submission gets the same response.
import { Option } from "effect"
import { Hex } from "effect/encoding"
import type { NetworkId } from "../../kernel/config/Network.ts"
import type { Payment, Terms } from "../../kernel/payment/Payment.ts"
import { canonicalJson } from "../../kernel/payment/wire/canonicalJson.ts"
import type { Crypto } from "../../kernel/platform/Crypto.ts"

export const batchScheme = "batch-settlement"

/** How long a claim's transaction may take to be in a ledger. */
const timeoutSeconds = 60

interface Submission {
  readonly principal: string
  readonly network: NetworkId
  readonly receiver: string
  readonly token: string
  readonly payload: Readonly<Record<string, unknown>>
  /** Identity over restarts; none for a verification. */
  readonly identifier?: string
  /** The price that a voucher is verified for, atomic units. */
  readonly amount?: bigint
  readonly extra?: Readonly<Record<string, unknown>>
}

export const claimPrincipal = (owner: string): Payment["principal"] => ({
  owner,
  source: owner,
  keyed: owner.startsWith("key:")
})

export const claimPayment = (crypto: Crypto["Service"], submission: Submission): Payment => {
  const { amount = 0n, extra = {}, identifier, network, payload, principal, receiver, token } = submission
  const terms: Terms = {
    scheme: batchScheme,
    network,
    asset: token,
    amount: Option.some(amount),
    amountText: String(amount),
    payTo: receiver,
    maxTimeoutSeconds: timeoutSeconds,
    extra
  }
  const hashOf = (text: string) => Hex.encode(crypto.sha256(new TextEncoder().encode(text)))
  const fingerprintFor = (required: bigint) =>
    hashOf(canonicalJson({ network, payload, receiver, required: String(required), token }))
  return {
    dialect: "ledger",
    principal: claimPrincipal(principal),
    requirements: terms,
    accepted: terms,
    payload,
    resourceUrl: Option.none(),
    resource: {},
    extensions: new Map(),
    identifier: Option.fromUndefinedOr(identifier),
    ...(identifier === undefined ? {} : { idempotencyKey: hashOf(hashOf(`tollkeeper-claim-v1\n${identifier}`)) }),
    fingerprint: fingerprintFor(amount),
    fingerprintFor
  }
}
