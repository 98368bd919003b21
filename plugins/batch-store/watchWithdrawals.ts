// Watches channels with something to claim for withdrawals that their payers start, also when they make no more
// requests. What the ledger shows of a channel is read through the facilitator's verify of its newest voucher, which
// knows a started withdrawal within a ledger and costs neither a simulation nor a statement.
import { Clock, Effect, Option } from "effect"
import { Network } from "../../kernel/config/Network.ts"
import { Facilitator } from "../../kernel/payment/Facilitator.ts"
import { isRefusal } from "../../kernel/payment/Refusal.ts"
import { Schemes } from "../../kernel/payment/Scheme.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { claimPayment, batchScheme } from "./claimPayment.ts"
import { Claims, type Watched, watchedMax } from "./Claims.ts"

/** Channels read at one time. */
const readsConcurrentMax = 8

/** Refusals that mean a withdrawal has been started. */
const withdrawing = /_withdraw(al|ing)?_(requested|started|pending)$/

export const watchWithdrawals = Effect.gen(function* () {
  const claims = yield* Claims
  const crypto = yield* Crypto
  const facilitator = yield* Facilitator
  const network = yield* Network
  const schemes = yield* Schemes

  const extraOf = (withdrawDelay: number, receiverAuthorizer: string) =>
    Effect.sync(() => {
      const scheme = Option.getOrUndefined(schemes.find(batchScheme))
      const announced = scheme === undefined ? undefined : Option.getOrUndefined(scheme.supportedExtra(network.id))
      return { ...announced, areFeesSponsored: true, withdrawDelay, receiverAuthorizer }
    })

  const read = Effect.fnUntraced(function* (watched: Watched) {
    const { channelConfig, channelId, maxClaimableAmount, principal, signature, withdrawRequestedAt } = watched
    const { receiver, receiverAuthorizer, token, withdrawDelay } = channelConfig
    const payload = { type: "voucher", channelConfig, voucher: { channelId, maxClaimableAmount, signature } }
    const extra = yield* extraOf(withdrawDelay, receiverAuthorizer)
    const answer = yield* facilitator.verify(
      claimPayment(crypto, { principal, network: network.id, receiver, token, payload, extra })
    )
    if (isRefusal(answer)) {
      // Its start is not named: it is this moment at the latest.
      if (withdrawing.test(answer.reason) && withdrawRequestedAt === 0)
        yield* claims.seen(network.id, channelId, Math.floor((yield* Clock.currentTimeMillis) / 1_000))
      return
    }
    // A verify that says nothing of the channel's state leaves what is stored.
    const seen =
      "extra" in answer ? (answer.extra as Readonly<Record<string, unknown>>)["withdrawRequestedAt"] : undefined
    if (typeof seen === "number" && seen !== withdrawRequestedAt) yield* claims.seen(network.id, channelId, seen)
  })

  return Effect.gen(function* () {
    let after = ""
    while (true) {
      const page = yield* claims.watched(network.id, after)
      yield* Effect.forEach(page, read, { concurrency: readsConcurrentMax, discard: true })
      if (page.length < watchedMax) return
      after = page.at(-1)!.channelId
    }
  })
})
