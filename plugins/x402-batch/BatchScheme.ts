// The `batch-settlement` scheme on Stellar. A buyer's deposit opens a channel. Its vouchers are verified here without
// the ledger. A seller's claims, settles and refunds, and a payer's withdrawals, are submitted like any other
// settlement: recorded first, on a leased channel account, sponsored. README.md is the binding; this file registers the
// scheme if the network has a contract for it.
import { Effect, Layer, Option, Result } from "effect"
import { memoizePerObject, objectSlot } from "../../kernel/cache/objectSlot.ts"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import { withSpanIfSampled } from "../../kernel/effect/withSpanIfSampled.ts"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc } from "../../kernel/ledger/LedgerRpc.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { isRefusal } from "../../kernel/payment/Refusal.ts"
import { type Authorization, type Scheme, Schemes } from "../../kernel/payment/Scheme.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Signer } from "../../kernel/signer/Signer.ts"
import { networkIdOf } from "../../kernel/stellar/Envelope.ts"
import type { BatchContract } from "./batchCodec.ts"
import { claimsMax, decodePayload, type LedgerPayload } from "./BatchWire.ts"
import { ChannelStates } from "./ChannelStates.ts"
import { checkExpiry } from "./checks.ts"
import { batchKeys } from "./Config.ts"
import { Delegates } from "./Delegates.ts"
import { makeDepositTerms } from "./depositTerms.ts"
import { authorizationOf, formerKeysOf, nonceOf, useIn } from "./ledgerCalls.ts"
import { KnownChannels } from "./KnownChannels.ts"
import { refusals, refuse } from "./refusals.ts"
import { readExecuted } from "./simulationChecks.ts"
import { channelsOf, isStateAfter } from "./stateChecks.ts"
import { layOutDeposit } from "./unsignedDeposit.ts"
import { scheme, type State, verifyCall } from "./verifyCall.ts"
import { channelStateExtra, makeVerifyVoucher } from "./verifyVoucher.ts"
import { makeVouchers, type Vouchers } from "./Vouchers.ts"

/** Caches a payment's decoded payload, and its authorization as read at one ledger. */
const makeReading = (at: BatchContract, vouchers: Vouchers) => {
  let newest = 0
  const decoded = memoizePerObject((payload: Payment["payload"]) => decodePayload(payload, vouchers.known))
  /** The identity of a settle, cached after a read of the ledger. */
  const settles = objectSlot<Payment["payload"], Option.Option<Authorization>>()
  const keys = objectSlot<Payment["payload"], Option.Option<Authorization>>()
  /** Keys of the earlier settlements that may have swept the balance, for a settle that finds nothing left. */
  const swept = objectSlot<Payment["payload"], ReadonlyArray<string>>()
  const payloadOf = ({ payload }: Payment) => decoded(payload)
  const authorization = (payment: Payment): Option.Option<Authorization> => {
    const known = settles.get(payment.payload) ?? keys.get(payment.payload)
    if (known !== undefined) return known
    const payload = Result.getSuccess(payloadOf(payment))
    const read = Option.flatMap(payload, (one) => authorizationOf(at, one, payment.requirements, newest))
    keys.set(payment.payload, read)
    return read
  }
  return {
    payloadOf,
    authorization,
    formerKeys: (payment: Payment): ReadonlyArray<string> => {
      const payload = Result.getSuccess(payloadOf(payment))
      return swept.get(payment.payload) ?? (Option.isNone(payload) ? [] : formerKeysOf(at, payload.value, newest))
    },
    note: (sequence: number) => void (newest = sequence),
    noteSwept: (payment: Payment, keys: ReadonlyArray<string>) => {
      if (swept.get(payment.payload) === undefined) swept.set(payment.payload, keys)
    },
    noteSettle: (payment: Payment, key: string, payTo: string) => {
      if (settles.get(payment.payload) === undefined)
        settles.set(payment.payload, Option.some({ key, payer: at.address, moves: { payTo, amount: 0n } }))
    }
  }
}

/** Claims with checks that cost as much as a payment's. */
const claimsPerPayment = 8

/** A caller's rate counts a list of claims by its length: each has an id and a signature to check. */
const weightOf = ({ payload: { claims } }: Payment): number =>
  Array.isArray(claims) ? Math.max(1, Math.ceil(Math.min(claims.length, claimsMax) / claimsPerPayment)) : 1

/** True if the scheme's check settles a payload without a transaction: a voucher, or a buyer's request for a refund. */
const isCovered = ({ payload: { claims, refundNonce, type } }: Payment): boolean =>
  type === "voucher" || (type === "refund" && (claims === undefined || refundNonce === undefined))

/**
 * Payloads in which nothing expires by the terms' timeout: a voucher never expires, and claims and refunds sign a
 * separate expiry. Official sellers send no timeout for them.
 */
const untimed: ReadonlySet<unknown> = new Set(["voucher", "claim", "settle", "refund"])

/** The channel's state after its settlement, for the response; undefined if the ledger does not show it. */
const stateAfter = Effect.fnUntraced(function* (at: BatchContract, payload: LedgerPayload) {
  const states = yield* ChannelStates
  const channels = channelsOf(at, payload)
  const read = yield* Effect.catch(states.fresh(channels), () => Effect.succeed([]))
  const [first] = read
  const state = payload._tag === "Claim" ? undefined : first?.state
  return {
    payer: "config" in payload ? payload.config.payer : undefined,
    hasBuyer: "config" in payload,
    transfers: payload._tag !== "Claim",
    asset: payload._tag === "Deposit" ? payload.config.token : undefined,
    extra:
      state !== undefined && isStateAfter(payload, state)
        ? { channelState: channelStateExtra(first!.channelId, state) }
        : undefined
  }
})

/** Gives other plugins access to this process's state of channels and receivers. */
const giveReadings = Effect.fnUntraced(function* (states: ChannelStates["Service"], vouchers: Vouchers) {
  const known = yield* KnownChannels
  known.readBy(
    () =>
      states.known().flatMap(({ channelId, state }) => {
        const config = vouchers.configOf(channelId)
        return config === undefined || state === undefined ? [] : [{ channelId, config, state }]
      }),
    (receiver, token) =>
      Effect.map(states.receiver(receiver, token), (read) =>
        read === undefined ? 0n : read.totalClaimed - read.totalSettled
      ),
    states.stateOf
  )
})

const makeScheme = Effect.fnUntraced(function* (at: BatchContract) {
  const { depositMin, fitsBudget, receiverError } = yield* makeDepositTerms(at.address)
  const services = yield* Effect.context<ChannelStates | Crypto | LedgerClock | LedgerRpc | Limits | Network | Signer>()
  const clock = yield* LedgerClock
  const signer = yield* Signer
  const vouchers = makeVouchers(at, yield* Crypto)
  const { authorization, formerKeys, note, noteSettle, noteSwept, payloadOf } = makeReading(at, vouchers)
  const keyOf = (payment: Payment) => Option.getOrUndefined(authorization(payment))?.key
  const { hasCharged, heldFor, sign } = yield* Delegates
  const context = { at, vouchers, keyOf, noteSwept, sign, depositMin, fitsBudget, receiverError }
  const states = yield* ChannelStates
  yield* giveReadings(states, vouchers)
  const verifyVoucher = makeVerifyVoucher({ contract: at.address, vouchers, states, hasCharged, isOurs: signer.isOurs })
  yield* clock.subscribe(Effect.map(clock.status, ({ time }) => note(time?.sequence ?? 0)))
  const batch: Scheme = {
    kind: "channel",
    scheme,
    refusals,
    supportedExtra: (_, owner) =>
      Option.some({ batchContract: at.address, minDeposit: String(depositMin), ...heldFor(owner) }),
    authorization,
    weight: weightOf,
    formerKeys,
    cover: (payment, stage) => {
      if (!isCovered(payment)) return undefined
      const decoded = payloadOf(payment)
      if (Result.isFailure(decoded)) return Effect.succeed(refuse(decoded.failure.word, decoded.failure.message))
      const payload = decoded.success
      return payload._tag === "Voucher" ? verifyVoucher(payment, payload, stage) : undefined
    },
    verify: Effect.fnUntraced(
      function* (payment, stage) {
        const decoded = payloadOf(payment)
        if (Result.isFailure(decoded)) return refuse(decoded.failure.word, decoded.failure.message)
        const payload = decoded.success
        if (payload._tag === "Voucher") return refuse("payload_type", "a voucher is not settled on the ledger")
        const verified = yield* verifyCall(context, payment, payload, stage)
        if (!isRefusal(verified) && payload._tag === "Settle")
          noteSettle(payment, verified.authorizationKey, verified.payTo)
        return verified
      },
      withSpanIfSampled("x402-batch.verify"),
      Effect.provideContext(services)
    ),
    prepare: Effect.fnUntraced(function* (payment, { authorizationExpiresLedger, payer, state }) {
      const error = checkExpiry(authorizationExpiresLedger, (yield* clock.now).sequence)
      if (error === undefined) return state as State
      const isSigned = nonceOf(keyOf(payment) ?? "") !== "none"
      return {
        ...refuse(error[0], error[1], payer),
        ...(isSigned ? { authorizationExpiresLedger } : {})
      }
    }),
    unsigned: (payment, order) => Effect.provideContext(layOutDeposit(context, payment, order), services),
    isUntimed: ({ payload }) => untimed.has(payload["type"]),
    answerSettled: (payment) => {
      const payload = Result.getSuccess(payloadOf(payment))
      return Option.isNone(payload) || payload.value._tag === "Voucher"
        ? Effect.succeed({})
        : Effect.provideContext(stateAfter(at, payload.value), services)
    },
    nonces: { nonceOf, useIn: (key, promise, operationXdr) => useIn(at.address, key, promise, operationXdr) },
    checkExecuted: (promise, executed) => readExecuted(at.address, promise, executed)
  }
  return batch
})

/** Registers the scheme until the plugin's Scope closes, if the network has a contract for it. */
export const layer = Layer.unwrap(
  Effect.gen(function* () {
    const network = yield* Network
    const { batch_contract: contract = "" } = network.keys(batchKeys)
    const shared = Layer.merge(KnownChannels.layer, Delegates.layer)
    if (contract === "")
      return Layer.merge(
        shared,
        Layer.effectDiscard(Effect.logInfo("batch-settlement is not offered: no contract is configured"))
      )
    const register = Effect.gen(function* () {
      const at = { networkId: networkIdOf(yield* Crypto, network.passphrase), address: contract }
      yield* (yield* Schemes).register(yield* makeScheme(at))
    })
    return Layer.provideMerge(Layer.provide(Layer.effectDiscard(register), ChannelStates.layer), shared)
  })
)
