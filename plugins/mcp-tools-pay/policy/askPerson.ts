// A person's approval of one invocation. All its calls share one question, whether they are concurrent, repeated, or at
// several replicas. The first call to claim the request asks the person behind its client; the others wait for the
// answer, which is stored with the request. A refusal lasts as long as a request would. One payment uses up an
// approval. Calls that waited for it, or that arrive before that payment is reserved, continue in parallel, and the
// budget's store lets one of them pay. A client that cannot ask, or is not trusted to, leaves the request to an
// operator.
import { Clock, Effect } from "effect"
import { Hex } from "effect/encoding"
import { Network } from "../../../kernel/config/Network.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { type Caller, toolError, inert, quoted, retryableError, unitsOf } from "../../mcp-tools/contract.ts"
import type { Deposit, Invocation } from "../call/Invocation.ts"
import { Config } from "../Config.ts"
import { Approvals } from "./Approvals.ts"
import { isLeft } from "./ApprovalStore.ts"
import type { Approval, Bought } from "./ApprovalWire.ts"

/** Time for a person to answer; the SDK times out a few seconds earlier. */
const questionMillis = 125_000

/** Maximum characters of each part of a question. */
const titleMax = 120
const actionMax = 240
const argumentsMax = 300

/**
 * An approval is only for this call on these terms, and only for its next payment. If it is returned while another call
 * of the invocation pays, it allows no further payment. The terms are the signed ones and the text about the resource
 * that the person reads. They exclude the listing's version: a seller declares its listing again with each payment, and
 * a change that no question shows would otherwise ask the person again.
 */
const approvalId = (crypto: Crypto["Service"], { about, bought, key, option }: Invocation, made: number): string => {
  const { amount, asset, extra, maxTimeoutSeconds, network, payTo, scheme } = option
  const signed = [network, scheme, asset, payTo, amount.toString(), maxTimeoutSeconds, extra]
  const terms = [key, ...signed, about.origin ?? null, bought.title, bought.action, made]
  return Hex.encode(crypto.sha256(new TextEncoder().encode(canonicalJson(terms)))).slice(0, 32)
}

const hoursOf = (seconds: number): string =>
  seconds % 3_600 === 0 ? `${seconds / 3_600} hours` : `${Math.ceil(seconds / 60)} minutes`

/**
 * Describes the amount that a call from a payment channel may move: the person decides on the deposit, not on the price
 * of one call.
 */
const movesOf = ({ amount, contract, price, withdrawDelaySeconds }: Deposit, priced: (amount: bigint) => string) =>
  `This call is paid from a payment channel. If the channel does not cover it, a deposit of ${priced(amount)} ` +
  `(${amount} atomic units) moves to the contract ${contract}; otherwise nothing moves, and a voucher for ` +
  `${priced(price)} is signed. The seller can take from the deposit what vouchers are signed for; the rest is ` +
  "refunded when the " +
  `channel is idle, and can be withdrawn without the seller after ${hoursOf(withdrawDelaySeconds)}.`

/** Describes the purchase. Text of a seller or an agent is inert and shortened. */
const boughtOf = Effect.fnUntraced(function* ({ bought, deposit, option }: Invocation, { principal }: Caller) {
  const { assets } = yield* Network
  const { ceilings, perCall } = yield* Config
  const asset = assets.get(option.asset)
  const priced = (amount: bigint) =>
    asset === undefined
      ? `${amount} atomic units of ${option.asset}`
      : `${unitsOf(amount, asset.decimals)} ${asset.symbol}`
  return {
    title: inert(bought.title, titleMax),
    action: inert(bought.action, actionMax),
    arguments: inert(JSON.stringify(bought.arguments ?? null), argumentsMax),
    price: priced(deposit?.price ?? option.amount),
    ...(deposit === undefined ? {} : { moves: movesOf(deposit, priced) }),
    budget:
      `${principal}: at most ${priced(perCall)} a call, ${priced(ceilings.perSession)} a session and ` +
      `${priced(ceilings.perDay)} a day`
  } satisfies Bought
})

const sentenceOf = ({ agent, amount, asset, bought, origin, payTo, rule }: Approval): string =>
  bought === undefined
    ? `Agent ${agent} asks to pay ${amount} atomic units of ${asset} to ${payTo}. Rule ${rule} requires your approval.`
    : [
        `Agent ${agent} asks to buy ${quoted(bought.title, titleMax)}: ${quoted(bought.action, actionMax)}, with the ` +
          `arguments ${inert(bought.arguments, argumentsMax)}.`,
        bought.moves === undefined
          ? `Price: ${bought.price} (${amount} atomic units of ${asset}), paid to ${payTo} for a resource of ` +
            `${origin ?? "a symbolic name"}.`
          : `Price: ${bought.price} of ${asset} a call, for ${payTo} and a resource of ${origin ?? "a symbolic name"}.`,
        ...(bought.moves === undefined ? [] : [bought.moves]),
        `Budget of ${bought.budget}.`,
        `Rule ${rule} requires your approval. What is in quotation marks and the arguments are data of the seller ` +
          "and the agent, not instructions."
      ].join("\n")

const waiting = (approval: Approval) =>
  retryableError(
    toolError("PAYMENT_REJECTED", "a person must approve this payment; repeat the identical call once it is approved", {
      approval: { id: approval.id, state: approval.state, rule: approval.rule }
    })
  )

const refusedByPerson = (rule: string) => toolError("PAYMENT_REJECTED", "a person denied this payment", { rule })
const noRoom = toolError("PAYMENT_REJECTED", "a person must approve this payment, but too many requests already wait")

/** The stored request, or a new one; undefined if there is no room. */
const requested = Effect.fnUntraced(function* (invocation: Invocation, caller: Caller, rule: string, made: number) {
  const { ask, find } = yield* Approvals
  const { policy } = yield* Config
  const crypto = yield* Crypto
  const { amount, asset, payTo } = invocation.option
  const { grade: _, ...about } = invocation.about
  const id = approvalId(crypto, invocation, made)
  const stored = yield* find(id, policy.approvalMillis)
  // A used one counts too: its payment is not reserved yet, otherwise `made` would be larger.
  if (stored !== undefined) return stored
  const isKept = yield* ask(
    {
      ...about,
      id,
      state: "pending",
      agent: caller.principal,
      origin: about.origin ?? null,
      asset,
      payTo,
      amount: amount.toString(),
      rule,
      askedAtMillis: yield* Clock.currentTimeMillis,
      mark: Hex.encode(crypto.randomBytes(8)),
      bought: yield* boughtOf(invocation, caller)
    },
    policy.approvalMillis
  )
  // Another call may have stored the request in between, so we use the mark from the store.
  return isKept ? yield* find(id, policy.approvalMillis) : undefined
})

/** Handles a pending request: asks the person, waits for the call that asks, or leaves it to an operator. */
const question = Effect.fnUntraced(function* (pending: Approval, { ask, isAnswered, principal }: Caller) {
  const { changed, claim, decide, leave } = yield* Approvals
  const { policy } = yield* Config
  // Over HTTP the client is a program with an agent's key, possibly the agent itself.
  const isTrusted = policy.askClient === "http-clients" || (policy.askClient && principal === "stdio")
  if (!isTrusted || ask === undefined) return yield* waiting(pending)
  const key = `approve-${pending.mark}`
  const isOurs = isAnswered?.(key) === true || (yield* claim(pending.id, questionMillis, policy.approvalMillis))
  if (!isOurs) return yield* isLeft(pending, policy.approvalMillis) ? waiting(pending) : changed(pending.id)
  const answer = yield* ask(key, sentenceOf(pending))
  if (answer === undefined) {
    // Dismissed: an operator may still decide it, and we do not ask the person again.
    yield* leave(pending.id, policy.approvalMillis)
    return yield* waiting(pending)
  }
  return yield* Effect.asVoid(decide(pending.id, answer ? "approved" : "denied", policy.approvalMillis))
})

/**
 * Waits for the approval and returns it. Returns undefined if another call of the invocation has used it and not yet
 * reserved its payment. `made` was read before the approval was used, so if that other call pays, this one reserves
 * nothing.
 */
export const askPerson = Effect.fnUntraced(function* (
  invocation: Invocation,
  caller: Caller,
  rule: string,
  made: number
) {
  const { changed, find, take } = yield* Approvals
  const { policy } = yield* Config
  const end = (yield* monotonicMillis) + questionMillis
  let current = yield* requested(invocation, caller, rule, made)
  if (current === undefined) return yield* noRoom
  const { id, mark } = current
  let isTried = false
  while (current !== undefined && current.mark === mark) {
    if (current.state === "denied") return yield* refusedByPerson(rule)
    if (current.state === "used") return undefined
    if ((yield* monotonicMillis) > end) return yield* waiting(current)
    if (current.state === "pending") yield* question(current, caller)
    else if (yield* take(id)) return current
    // Another call has used it, and the next read shows that. If the store is unavailable, we retry after a pause.
    else if (isTried) yield* changed(id)
    else isTried = true
    current = yield* find(id, policy.approvalMillis)
  }
  return yield* retryableError(
    toolError("PAYMENT_REJECTED", "the request for approval has expired; repeat the identical call", { rule })
  )
})
