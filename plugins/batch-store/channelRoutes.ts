// The routes below /batch/v1. With its key, a seller reserves, charges and releases its channels, stores the ledger's
// state, reads its records and sets its claim policy. Every response that carries a decision has status 200 and names
// the decision. A malformed body gets a 400 that names the problem.
import { Effect, Option, Schema } from "effect"
import { readNetwork } from "../../kernel/Dialect.ts"
import { Network } from "../../kernel/config/Network.ts"
import { parseJson } from "../../kernel/http/BoundedJson.ts"
import { Authentication } from "../../kernel/http/Authentication.ts"
import { json, temporarilyUnavailable, unauthorized } from "../../kernel/http/httpMiddleware.ts"
import { readBody } from "../../kernel/http/readBody.ts"
import { addRoutes, type Documented, route } from "../../kernel/http/Route.ts"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import { signatureSeconds } from "../x402-batch/contract.ts"
import { Config } from "./Config.ts"
import { Authorizer } from "./Authorizer.ts"
import type {
  AuthorizerAnswer,
  ChannelRecord,
  Channels,
  Decided,
  Export,
  Exported,
  Refund,
  RefundAnswer,
  Voucher
} from "./ChannelWire.ts"
import * as routes from "./description.ts"
import { pageMax, type Place, StoredChannels, type Reserved, type Charged } from "./StoredChannels.ts"

type Response = ReturnType<typeof json>

const bodyBytesMax = 16_384
/** A shorter reservation could expire before the request is answered. */
const reservationMinSeconds = 5
const reservationMaxSeconds = 600

const notFound = json({ error: "not_found" }, { status: 404 })
const conflict = (detail: string) => json({ error: "conflict", details: [detail] }, { status: 409 })
const unsigned = json(
  {
    error: "forbidden",
    details: ["The store has no authorizer's secret, so it signs no claims and refunds. Set BATCH_AUTHORIZER_SECRET."]
  },
  { status: 403 }
)
const limited = (what: string) =>
  json({ error: "forbidden", details: [`this key has reached its limit of ${what}`] }, { status: 403 })
const full = limited("channels (batch_store.channels_per_key_max)")
const invalid = (...details: ReadonlyArray<string>) => json({ error: "invalid_request", details }, { status: 400 })
/** A record must stay claimable, so a voucher that the ledger would refuse never replaces a valid one. */
const unverified = invalid("voucher: not for this channel, or not signed by its payerAuthorizer")
/** Another store may sell on the same channel: only its authorizer shows which one keeps it. */
const elsewhere = conflict(
  "the channel's receiverAuthorizer is not this store's key for the caller: another store or the seller keeps it"
)
const keyless = json(
  {
    error: "forbidden",
    details: ["Channels belong to a key, and no API keys are configured. Set FACILITATOR_API_KEYS."]
  },
  { status: 403 }
)

/** The message of a decoding failure, bounded: the location and the requirement. */
const issueOf = (error: { readonly message: string }): string => error.message.replaceAll(/\s+/gu, " ").slice(0, 300)

const decided = (answer: typeof Decided.Type): Response => json(answer)

/** Reads, authenticates and decodes a request, then answers it. */
const makeKeyed = Effect.gen(function* () {
  const callers = yield* Authentication
  const config = yield* Config
  const network = yield* Network

  return <S extends Schema.Codec<{ readonly network: string }, any>, E>(
    declared: Documented & { readonly body: S },
    answer: (place: Place, body: S["Type"]) => Effect.Effect<Response, E>
  ) => {
    const decode = Schema.decodeUnknownEffect(declared.body)
    return route(declared, (request) =>
      Effect.gen(function* () {
        const caller = callers.authenticate(request)
        if (Option.isNone(caller)) return unauthorized
        if (!caller.value.keyed && !config.allowKeyless) return keyless
        const parsed = yield* Effect.result(
          Effect.flatMap(readBody(request, bodyBytesMax), (bytes) => parseJson(bytes))
        )
        if (parsed._tag === "Failure") return invalid(parsed.failure.message)
        const body = yield* Effect.result(decode(parsed.success))
        if (body._tag === "Failure") return invalid(issueOf(body.failure))
        const sent = Option.getOrUndefined(readNetwork(body.success.network))
        if (sent?.network !== network.id) return invalid("network: not served here")
        return yield* answer({ principal: caller.value.owner, network: network.id }, body.success)
      }).pipe(
        Effect.catch((error) =>
          Effect.as(Effect.logError("the channel store did not answer a request", error), temporarilyUnavailable)
        )
      )
    )
  }
})

/** Records and signs the refund of the unreserved balance. The same transaction claims the charged amount. */
const makeRefund = Effect.gen(function* () {
  const authorizer = yield* Authorizer
  const channels = yield* StoredChannels
  const clock = yield* LedgerClock

  const signed = (place: Place, channel: ChannelRecord, { maxClaimableAmount, signature }: typeof Voucher.Type) => {
    const { channelConfig, channelId, chargedCumulativeAmount, pendingRefund, totalClaimed } = channel
    const { amount, expiresAt, refundNonce } = pendingRefund!
    const totalsClaimed = {
      voucher: { channel: channelConfig, maxClaimableAmount },
      signature,
      totalClaimed: chargedCumulativeAmount
    }
    const claims = BigInt(chargedCumulativeAmount) > BigInt(totalClaimed) ? [totalsClaimed] : []
    const unsignedRefund = { channelId, amount: BigInt(amount), nonce: BigInt(refundNonce), claims, expiresAt }
    const signatures = authorizer.refund(place.principal, unsignedRefund)
    return signatures === undefined
      ? unsigned
      : json({
          amount,
          refundNonce: String(refundNonce),
          expiresAt,
          claims,
          ...signatures
        } satisfies typeof RefundAnswer.Type)
  }

  return Effect.fnUntraced(function* (place: Place, { amount, channelId, payment, voucher }: typeof Refund.Type) {
    const channel = yield* channels.get(place, channelId)
    if (channel === undefined) return notFound
    if (channel.pendingRequest?.pendingId !== payment) return conflict("the request has not reserved the channel")
    const { balance, chargedCumulativeAmount, pendingRefund } = channel
    if (!authorizer.isVoucher(channel.channelConfig, voucher)) return unverified
    if (voucher.maxClaimableAmount !== chargedCumulativeAmount) return conflict("the voucher does not match the charge")
    if (pendingRefund?.pendingId === payment) return signed(place, channel, voucher)
    const left = BigInt(balance) - BigInt(chargedCumulativeAmount)
    if (left <= 0n) return conflict("nothing is left to refund")
    const asked = amount === undefined || BigInt(amount) > left ? left : BigInt(amount)
    if (asked === 0n) return invalid("amount: a positive amount is required")
    const expiresAt = (yield* clock.now).closedAtSeconds + signatureSeconds
    const refund = { channelId, payment, charged: chargedCumulativeAmount, amount: asked, expiresAt }
    const held = yield* channels.holdRefund(place, refund)
    return held === undefined ? conflict("another refund of the channel is pending") : signed(place, held, voucher)
  })
})

/** Operations that a buyer's request performs on its channel. */
const makeDecisions = Effect.gen(function* () {
  const answered = ({ channel, status }: Reserved | Charged) =>
    status === "full" ? full : decided({ status, ...(channel === undefined ? {} : { channel }) })
  const config = yield* Config
  const channels = yield* StoredChannels
  const authorizer = yield* Authorizer
  const keyed = yield* makeKeyed

  return [
    keyed(routes.reserve, (place, { network: _, ttlSeconds, ...asked }) => {
      const own = authorizer.of(place.principal)
      if (own === undefined) return Effect.succeed(unsigned)
      if (asked.channelConfig.receiverAuthorizer !== own) return Effect.succeed(elsewhere)
      if (!authorizer.isVoucher(asked.channelConfig, asked.voucher)) return Effect.succeed(unverified)
      const options = {
        ttlSeconds: Math.min(reservationMaxSeconds, Math.max(reservationMinSeconds, ttlSeconds)),
        channelsMax: config.channelsMax
      }
      return Effect.map(channels.reserve(place, asked, options), answered)
    }),
    keyed(routes.charge, (place, { network: _, ...asked }) => Effect.map(channels.charge(place, asked), answered)),
    keyed(routes.release, (place, { channelId, payment }) =>
      Effect.as(channels.release(place, channelId, payment), decided({ status: "released" }))
    )
  ]
})

/** Lifetime of an exported claim, seconds: the longest delay of a withdrawal. */
const exportSeconds = 2_592_000

const foreignClaim = invalid(
  "claims: the receiverAuthorizer of a channel is not a key that is held here for the caller"
)

/**
 * Signs claims for a watchtower: one for each stored channel with unclaimed charges, or the claims that a caller sends
 * from its own records. Such a claim pays the receiver at most the amount that the payer signed.
 */
const makeExport = Effect.gen(function* () {
  const authorizer = yield* Authorizer
  const channels = yield* StoredChannels
  const clock = yield* LedgerClock
  return Effect.fnUntraced(function* (place: Place, { after = "", claims: sent }: typeof Export.Type) {
    if (!authorizer.signs(place.principal)) return unsigned
    const expiresAt = (yield* clock.now).closedAtSeconds + exportSeconds
    if (sent !== undefined) {
      const signed = sent.map((claim) => {
        const claimAuthorizerSignature = authorizer.claim(place.principal, claim, expiresAt)
        return claimAuthorizerSignature === undefined ? undefined : { ...claim, expiresAt, claimAuthorizerSignature }
      })
      const claims = signed.filter((claim) => claim !== undefined)
      return claims.length < sent.length ? foreignClaim : json({ claims } satisfies typeof Exported.Type)
    }
    const page = yield* channels.list(place, after)
    const claims = page.flatMap(
      ({
        channelConfig,
        chargedCumulativeAmount: totalClaimed,
        signature,
        signedMaxClaimable,
        totalClaimed: before
      }) => {
        const claim = {
          voucher: { channel: channelConfig, maxClaimableAmount: signedMaxClaimable },
          signature,
          totalClaimed
        }
        if (BigInt(totalClaimed) <= BigInt(before)) return []
        const claimAuthorizerSignature = authorizer.claim(place.principal, claim, expiresAt)
        return claimAuthorizerSignature === undefined ? [] : [{ ...claim, expiresAt, claimAuthorizerSignature }]
      }
    )
    const next = page.length === pageMax ? { after: page.at(-1)!.channelId } : {}
    return json({ claims, ...next } satisfies typeof Exported.Type)
  })
})

/** Operations with which a seller reads, signs and configures. */
const makeRecords = Effect.gen(function* () {
  const channels = yield* StoredChannels
  const authorizer = yield* Authorizer
  const keyed = yield* makeKeyed
  const refund = yield* makeRefund

  return [
    keyed(routes.sync, (place, { channelId, payment, state }) =>
      Effect.map(channels.sync(place, channelId, state, payment), (channel) =>
        channel === undefined ? notFound : decided({ status: "synced", channel })
      )
    ),
    keyed(routes.read, (place, { after, channelId }) =>
      Effect.map(
        channelId === undefined
          ? channels.list(place, after ?? "")
          : Effect.map(channels.get(place, channelId), (one) => (one === undefined ? [] : [one])),
        (found) =>
          json({
            channels: found,
            ...(found.length === pageMax ? { after: found.at(-1)!.channelId } : {})
          } satisfies typeof Channels.Type)
      )
    ),
    keyed(routes.refund, refund),
    keyed(routes.exported, yield* makeExport),
    keyed(routes.authorizer, ({ principal }) =>
      Effect.sync(() => {
        const receiverAuthorizer = authorizer.of(principal)
        return receiverAuthorizer === undefined
          ? unsigned
          : json({ receiverAuthorizer } satisfies typeof AuthorizerAnswer.Type)
      })
    ),
    keyed(routes.policy, (place, { claimAt, claimEverySeconds, token }) =>
      Effect.map(channels.setPolicy(place, token, { claimEverySeconds, claimAt }), (isSet) =>
        isSet ? decided({ status: "set" }) : limited("policies")
      )
    )
  ]
})

export const addChannelRoutes = Effect.gen(function* () {
  yield* addRoutes(routes.group, [...(yield* makeDecisions), ...(yield* makeRecords)])
})
