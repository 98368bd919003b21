// Prepares the data that a payer signs for a seller's terms: the scheme builds and checks it, and one recording
// simulation shows that it would succeed and its cost. It stores nothing and runs no SQL. A careful client does not
// trust it, but builds the same bytes from its own terms.
import { Effect, Option } from "effect"
import { Base64, Hex } from "effect/encoding"
import { Network } from "../../kernel/config/Network.ts"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc, type SimulationAnswer } from "../../kernel/ledger/LedgerRpc.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { explainRefused, explainRestore } from "../../kernel/payment/readSimulation.ts"
import { isRefusal, type Refusal, refusal } from "../../kernel/payment/Refusal.ts"
import { cannotPrepare, Schemes } from "../../kernel/payment/Scheme.ts"
import { type Unsigned, unsignedEnvelope, type UnsignedOrder } from "../../kernel/payment/Unsigned.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Signer } from "../../kernel/signer/Signer.ts"
import { accountKeyOf, addressText } from "../../kernel/stellar/Address.ts"
import { authorizedCall, encodeEntry, type Invocation, signedPreimage } from "../../kernel/stellar/AuthEntry.ts"
import { networkIdOf } from "../../kernel/stellar/Envelope.ts"
import { encodeValue, symbolText } from "../../kernel/stellar/Value.ts"
import type { PrepareAnswer } from "./PrepareWire.ts"

/** Seconds that a client assumes for a ledger, to bound the lifetime of an authorization. */
const secondsPerLedger = 5

/**
 * The calls that an authorization covers, in the order in which a wallet receives them: each call before its
 * subinvocations.
 */
const contextsOf = (invocation: Invocation): ReadonlyArray<PreparedContext> => {
  const call = authorizedCall(invocation)
  const own =
    call === undefined
      ? []
      : [
          {
            contract: addressText(call.contractAddress) ?? "",
            functionName: symbolText(call.functionName),
            args: call.args.map((value) => Base64.encode(encodeValue(value)))
          }
        ]
  return [...own, ...invocation.subInvocations.flatMap(contextsOf)]
}

type Answer = typeof PrepareAnswer.Type
type PreparedContext = NonNullable<Answer["toSign"]["checkAuth"]>["contexts"][number]

/** A sentence on why a simulated payment would fail; undefined if it would succeed. */
const simulationIssue = (simulated: SimulationAnswer): string | undefined => {
  switch (simulated._tag) {
    case "Refused":
      return explainRefused(simulated)
    case "RestoreRequired":
      return explainRestore(simulated)
    case "Simulated":
      return undefined
  }
}

export type Choices = UnsignedOrder["choices"]

const makeOrder = Effect.fnUntraced(function* (payer: string, choices: Choices, maxTimeoutSeconds: number) {
  const crypto = yield* Crypto
  const time = yield* (yield* LedgerClock).now
  const random = crypto.randomBytes(8)
  const order: UnsignedOrder = {
    payer,
    nonce: new DataView(random.buffer, random.byteOffset, 8).getBigInt64(0),
    expiresLedger: time.sequence + Math.ceil(maxTimeoutSeconds / secondsPerLedger),
    latestLedger: time.sequence,
    closedAtSeconds: time.closedAtSeconds,
    salt: crypto.randomBytes(32),
    choices
  }
  const ledgers = order.expiresLedger - time.sequence
  const at = new Date((time.closedAtSeconds + ledgers * time.secondsPerLedger) * 1_000).toISOString()
  return { order, at }
})

const bytesToSign = (unsigned: Unsigned, payer: string, crypto: Crypto["Service"], passphrase: string) => {
  const preimage = signedPreimage(networkIdOf(crypto, passphrase), unsigned.entry)
  if (preimage === undefined) throw new Error("an unsigned entry has no address credentials")
  const hash = Hex.encode(crypto.sha256(preimage))
  const checkAuth = {
    contract: payer,
    signaturePayload: hash,
    contexts: contextsOf(unsigned.entry.rootInvocation)
  }
  const beside = Object.entries(unsigned.beside ?? {}).map(([name, { preimage: bytes, signer }]) => [
    name,
    { signer, preimage: Base64.encode(bytes), hash: Hex.encode(crypto.sha256(bytes)) }
  ])
  return {
    preimage: Base64.encode(preimage),
    hash,
    ...(accountKeyOf(payer) === undefined ? { checkAuth } : {}),
    ...(beside.length === 0 ? {} : { beside: Object.fromEntries(beside) as NonNullable<Answer["toSign"]["beside"]> })
  }
}

/** Prepares a payment for terms that passed the checks of the envelope; a refusal has the reason of verify. */
export const preparePayment = Effect.fn("prepare.preparePayment")(function* (
  payment: Payment,
  payer: string,
  choices: Choices,
  network: string
) {
  const { requirements } = payment
  const scheme = (yield* Schemes).find(requirements.scheme)
  const { at, order } = yield* makeOrder(payer, choices, requirements.maxTimeoutSeconds)
  const unsigned = yield* Option.match(scheme, {
    onNone: () => cannotPrepare(payment, order),
    onSome: (known) => known.unsigned(payment, order)
  })
  if (isRefusal(unsigned)) return unsigned
  const settings = yield* Network
  const simulated = yield* (yield* LedgerRpc).simulate(unsignedEnvelope(unsigned.invoked, []))
  const issue = simulationIssue(simulated)
  if (issue !== undefined || simulated._tag !== "Simulated") return wouldFail(issue ?? "", payer)
  const { asked } = yield* (yield* LedgerClock).fees
  const transaction = unsignedEnvelope(unsigned.invoked, [unsigned.entry])
  const answer: Answer = {
    x402Version: 2,
    scheme: requirements.scheme,
    network,
    networkPassphrase: settings.passphrase,
    payer,
    transaction,
    authorizationEntry: Base64.encode(encodeEntry(unsigned.entry)),
    nonce: order.nonce.toString(),
    chosen: unsigned.chosen,
    toSign: bytesToSign(unsigned, payer, yield* Crypto, settings.passphrase),
    payload: unsigned.payload?.(transaction) ?? { transaction },
    expires: { ledger: order.expiresLedger, latestLedger: order.latestLedger, at },
    fees: {
      sponsored: true,
      sponsor: (yield* Signer).sponsor,
      resourceStroops: simulated.resourceFeeStroops.toString(),
      inclusionStroops: asked.toString(),
      ceilingStroops: settings.feeCeilings(requirements.scheme).totalStroopsMax.toString()
    }
  }
  return answer
})

const wouldFail = (message: string, payer: string): Refusal =>
  refusal("payment_would_fail", message, Option.some(payer))
