// Watches channels with something to claim for withdrawals that their payers start, also when they make no more
// requests. The facilitator's verify of a channel's newest voucher has the ledger's state read, which costs neither a
// simulation nor a statement; what was read is taken from the scheme. Each seller's row is verified separately: a
// voucher that does not verify hides no other seller's channel.
import { Effect, Option } from "effect"
import { Network } from "../../kernel/config/Network.ts"
import { Facilitator } from "../../kernel/payment/Facilitator.ts"
import { isRefusal } from "../../kernel/payment/Refusal.ts"
import { Schemes } from "../../kernel/payment/Scheme.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { type KnownChannel, KnownChannels } from "../x402-batch/contract.ts"
import { larger } from "./ChannelWire.ts"
import { claimPayment, batchScheme } from "./claimPayment.ts"
import { Claims, type Watched, watchedMax } from "./Claims.ts"

/** Channels read at one time. */
const readsConcurrentMax = 8

export const watchWithdrawals = Effect.gen(function* () {
  const claims = yield* Claims
  const crypto = yield* Crypto
  const facilitator = yield* Facilitator
  const known = yield* KnownChannels
  const network = yield* Network
  const schemes = yield* Schemes

  const extraOf = (withdrawDelay: number, receiverAuthorizer: string) =>
    Effect.sync(() => {
      const scheme = Option.getOrUndefined(schemes.find(batchScheme))
      const announced = scheme === undefined ? undefined : Option.getOrUndefined(scheme.supportedExtra(network.id))
      return { ...announced, areFeesSponsored: true, withdrawDelay, receiverAuthorizer }
    })

  /** Whether the ledger's state is read: also a refusal is by a reading of now. */
  const read = Effect.fnUntraced(function* (watched: Watched) {
    const { channelConfig, channelId, maxClaimableAmount, principal, signature } = watched
    const { receiver, receiverAuthorizer, token, withdrawDelay } = channelConfig
    const payload = { type: "voucher", channelConfig, voucher: { channelId, maxClaimableAmount, signature } }
    const extra = yield* extraOf(withdrawDelay, receiverAuthorizer)
    const answer = yield* facilitator.verify(
      claimPayment(crypto, { principal, network: network.id, receiver, token, payload, extra })
    )
    return !isRefusal(answer) || schemes.statusOf(answer.reason) < 500
  })

  const note = Effect.fnUntraced(function* (watched: Watched, { state }: KnownChannel) {
    const { channelId, charged, lost: before, principal, refundNonce, withdrawRequestedAt } = watched
    const lost = larger(0n, BigInt(charged) - state.balance)
    // A withdrawal that started and ended unseen leaves its nonce moved, and less than what was charged.
    const isSame = state.withdrawRequestedAt === withdrawRequestedAt && state.refundNonce === BigInt(refundNonce)
    if (isSame && lost === BigInt(before)) return
    yield* claims.seen(network.id, watched, state)
    if (lost > BigInt(before))
      yield* Effect.logError("a payer has withdrawn what was charged and not claimed", {
        channel: channelId,
        seller: principal,
        payer: watched.channelConfig.payer,
        asset: watched.channelConfig.token,
        unclaimed: String(lost)
      })
  })

  const watchPage = Effect.fnUntraced(function* (page: ReadonlyArray<Watched>) {
    const isRead = yield* Effect.forEach(page, read, { concurrency: readsConcurrentMax })
    const byId = new Map(known.all().map((one) => [one.channelId, one]))
    for (const [at, watched] of page.entries()) {
      const shown = byId.get(watched.channelId)
      if (isRead[at] === true && shown !== undefined) yield* note(watched, shown)
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
