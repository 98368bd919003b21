// Watches channels with claimable charges for withdrawals by their payers, even if the payers make no more requests. It
// asks the facilitator to verify a channel's newest voucher. That call reads the ledger's state without a simulation or
// a statement, and this watcher takes the state from the scheme. Each seller's row is verified separately, so a voucher
// that fails verification does not hide another seller's channel.
import { Effect, Option } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient } from "effect/sql"
import { Network } from "../../kernel/config/Network.ts"
import { Facts } from "../../kernel/facts/Facts.ts"
import { Facilitator } from "../../kernel/payment/Facilitator.ts"
import { isRefusal } from "../../kernel/payment/Refusal.ts"
import { Schemes } from "../../kernel/payment/Scheme.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { type ChannelState, KnownChannels } from "../x402-batch/contract.ts"
import { claimPayment, batchScheme } from "./claimPayment.ts"
import { Claims, type Watched, watchedMax } from "./Claims.ts"
import { type ChannelLost, channelLostType } from "./contract.ts"
import { max as larger } from "effect/BigInt"

/**
 * The charged amount that the payer has withdrawn; undefined if nothing has changed since the record was written. If a
 * withdrawal started and ended unobserved, its nonce has changed and the balance is below the charged amount.
 */
export const changeOf = (
  record: Pick<Watched, "charged" | "lost" | "refundNonce" | "withdrawRequestedAt">,
  state: ChannelState
): bigint | undefined => {
  // The node is behind the record.
  if (state.refundNonce < BigInt(record.refundNonce)) return undefined
  const lost = larger(0n, BigInt(record.charged) - state.balance)
  const isSame =
    state.withdrawRequestedAt === record.withdrawRequestedAt && state.refundNonce === BigInt(record.refundNonce)
  return isSame && lost === BigInt(record.lost) ? undefined : lost
}

/** Channels read at one time. */
const readsConcurrentMax = 8

/** Publishes the lost amount, once for each amount, under a separate id. */
const makePublish = Effect.gen(function* () {
  const crypto = yield* Crypto
  const facts = yield* Facts
  return (principal: string, data: ChannelLost) => {
    const named = [principal, data.network, data.channelId, data.lost].join("\n")
    const id = Hex.encode(crypto.sha256(new TextEncoder().encode(named)))
    const subject = id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5")
    return facts.publish({ type: channelLostType, version: 1, subject, principal, data: { ...data } })
  }
})

export const watchWithdrawals = Effect.gen(function* () {
  const claims = yield* Claims
  const crypto = yield* Crypto
  const facilitator = yield* Facilitator
  const known = yield* KnownChannels
  const network = yield* Network
  const schemes = yield* Schemes
  const sql = yield* SqlClient.SqlClient
  const publish = yield* makePublish

  const extraOf = (withdrawDelay: number, receiverAuthorizer: string) =>
    Effect.sync(() => {
      const scheme = Option.getOrUndefined(schemes.find(batchScheme))
      const announced = scheme === undefined ? undefined : Option.getOrUndefined(scheme.supportedExtra(network.id))
      return { ...announced, areFeesSponsored: true, withdrawDelay, receiverAuthorizer }
    })

  /**
   * The ledger's state, undefined if it was not read: also a refusal is by a reading of now. It is taken here, because
   * other channels may evict it from the cache before the whole page is read.
   */
  const read = Effect.fnUntraced(function* (watched: Watched) {
    const { channelConfig, channelId, maxClaimableAmount, principal, signature } = watched
    const { receiver, receiverAuthorizer, token, withdrawDelay } = channelConfig
    const payload = { type: "voucher", channelConfig, voucher: { channelId, maxClaimableAmount, signature } }
    const extra = yield* extraOf(withdrawDelay, receiverAuthorizer)
    const answer = yield* facilitator.verify(
      claimPayment(crypto, { principal, network: network.id, receiver, token, payload, extra })
    )
    const isRead = !isRefusal(answer) || schemes.statusOf(answer.reason) < 500
    return isRead ? known.stateOf(channelId) : undefined
  })

  const note = Effect.fnUntraced(function* (watched: Watched, state: ChannelState) {
    const { channelId, charged, lost: before, principal } = watched
    const lost = changeOf(watched, state)
    if (lost === undefined) return
    if (lost <= BigInt(before)) return yield* claims.seen(network.id, watched, state)
    const { payer, receiver, token } = watched.channelConfig
    const fact = { network: network.id, channelId, payer, payTo: receiver, asset: token, charged, lost: String(lost) }
    yield* sql.withTransaction(Effect.andThen(claims.seen(network.id, watched, state), publish(principal, fact)))
    yield* Effect.logError("a payer withdrew charges that were not claimed", {
      channel: channelId,
      seller: principal,
      payer,
      asset: token,
      unclaimed: String(lost)
    })
  })

  const watchPage = Effect.fnUntraced(function* (page: ReadonlyArray<Watched>) {
    const states = yield* Effect.forEach(page, read, { concurrency: readsConcurrentMax })
    for (const [at, watched] of page.entries()) {
      const state = states[at]
      if (state !== undefined) yield* note(watched, state)
    }
  })

  return Effect.gen(function* () {
    let after: Pick<Watched, "principal" | "channelId"> = { principal: "", channelId: "" }
    while (true) {
      const page = yield* claims.watched(network.id, after)
      yield* watchPage(page)
      if (page.length < watchedMax) return
      after = page.at(-1)!
    }
  })
})
