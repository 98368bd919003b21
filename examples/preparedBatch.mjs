// @ts-check
// The part of `prepared.mjs` that pays by `batch-settlement`: one deposit, compared like every payment, then a voucher
// a request that no party lays out but this file. A channel is that of the seller's terms; the buyer bounds the deposit
// and the delay after which it gets its money back without the seller. A seller's total is taken only with a voucher
// that this buyer's own key signed for at least as much, and not by the one that it has just been sent: of that one no
// buyer knows whether it was taken, and a second one would pay twice for one request.
import { sign } from "node:crypto"
import { cutsMax } from "./keptPayments.mjs"
import {
  accountOf,
  call,
  invocation,
  limitOf,
  privateKeyOf,
  sha256,
  SignatureRefused,
  strkey,
  value
} from "./preparedBytes.mjs"

/** @typedef {import("./preparedSign.mjs").Terms} Terms */
/** @typedef {import("./preparedSign.mjs").Options} Options */
/**
 * What a buyer knows of a channel, atomic units: charged in all, deposited, and the most that a voucher was signed for,
 * kept before that voucher is sent. `unanswered`: answers in a row that were cut.
 * @typedef {{ charged: bigint, balance: bigint, signed?: bigint, unanswered?: number }} Channel
 */
/**
 * `contracts`: those that the buyer deposits into; without any, the scheme is refused. `depositTimes`: prices that a
 * deposit is for, default 100; a seller's announced least is followed up to ten times that many. `depositMax`: the most
 * for one deposit, default `depositTimes` times `maxAmount`. `withdrawDelayMax`: seconds, default a day.
 * `channels`: where channels are kept, default in memory. `salt`: 32 bytes
 * as hex, separates channels with one seller.
 * @typedef {{ contracts: ReadonlyArray<string>, depositTimes?: number, depositMax?: bigint, withdrawDelayMax?: number,
 *   channels?: Pick<Map<string, Channel>, "get" | "set">, salt?: string }} BatchOptions
 */

/** @type {Map<string, Channel>} */
const kept = new Map()
const digits = /^(0|[1-9][0-9]{0,38})$/
const secondsOfDay = 86_400
/** A seller's least deposit is at most this many times what the buyer would deposit by itself. */
export const leastTimes = 10

/**
 * Throws for terms that this buyer opens no channel for.
 * @param {Terms} terms @param {BatchOptions | undefined} batch
 */
export const checkBatchTerms = ({ extra }, batch) => {
  const { contracts = [], withdrawDelayMax = secondsOfDay } = batch ?? {}
  if (!contracts.includes(extra?.batchContract))
    throw new SignatureRefused("the batch contract is not one that this buyer knows")
  const { receiverAuthorizer, withdrawDelay } = extra
  if (!Number.isSafeInteger(withdrawDelay) || withdrawDelay < 900 || withdrawDelay > withdrawDelayMax)
    throw new SignatureRefused("the channel's withdraw delay is longer than this buyer waits")
  strkey(receiverAuthorizer)
}

/**
 * The channel with a seller: its terms, its id, and what is signed of it.
 * @param {Terms} terms @param {Options} options
 */
const channelOf = ({ asset, extra, payTo }, options) => {
  const { account } = accountOf(options.secret)
  const payer = options.wallet?.contract ?? account
  const { batchContract, receiverAuthorizer, withdrawDelay } = extra
  const salt = options.batch?.salt ?? "00".repeat(32)
  const config = {
    payer,
    payerAuthorizer: account,
    receiver: payTo,
    receiverAuthorizer,
    token: asset,
    withdrawDelay,
    salt
  }
  const vector = value.vec([
    value.address(payer),
    value.bytes(strkey(account).key),
    value.address(payTo),
    value.bytes(strkey(receiverAuthorizer).key),
    value.address(asset),
    value.u64(BigInt(withdrawDelay)),
    value.bytes(Buffer.from(salt, "hex"))
  ])
  const network = sha256(options.networkPassphrase ?? "Test SDF Network ; September 2015")
  /** @param {string} domain @param {ReadonlyArray<Uint8Array>} rest */
  const digest = (domain, rest) =>
    sha256(value.vec([value.symbol(domain), value.bytes(network), value.address(batchContract), ...rest]))
  const id = digest("x402_batch_channel", [vector])
  const voucherHash = (/** @type {bigint} */ max) => digest("x402_batch_voucher", [value.bytes(id), value.i128(max)])
  return { config, vector, channelId: id.toString("hex"), voucherHash, channels: options.batch?.channels ?? kept }
}

/** @param {ReturnType<typeof channelOf>} of @param {string} secret @param {bigint} max */
const voucherOf = ({ channelId, voucherHash }, secret, max) => ({
  channelId,
  maxClaimableAmount: String(max),
  signature: sign(null, voucherHash(max), privateKeyOf(secret)).toString("hex")
})

/** The most that vouchers of a channel were signed for. @param {Channel | undefined} known */
const signedIn = (known) => known?.signed ?? known?.charged ?? 0n

/** The same of the channel with the seller of these terms. @param {Terms} terms @param {Options} options */
export const signedBefore = (terms, options) => {
  if (terms.scheme !== "batch-settlement") return 0n
  const { channelId, channels } = channelOf(terms, options)
  return signedIn(channels.get(channelId))
}

/** @param {Terms} terms @param {Options} options @param {bigint} missing */
const depositFor = ({ amount, asset, extra, network }, options, missing) => {
  const limit = limitOf(asset, network, options) ?? 0n
  const { depositTimes = 100, depositMax = limit * BigInt(depositTimes) } = options.batch ?? {}
  const announced = digits.test(extra.minDeposit ?? "") ? BigInt(extra.minDeposit) : 0n
  const least = announced > missing ? announced : missing
  if (least > depositMax || announced > BigInt(amount) * BigInt(depositTimes * leastTimes))
    throw new SignatureRefused(`a deposit of ${least} is above this buyer's limit`)
  const wished = BigInt(amount) * BigInt(depositTimes)
  if (wished <= least) return least
  return wished > depositMax ? depositMax : wished
}

/**
 * A voucher where the deposit is enough, else a deposit with its voucher. `signCall` asks /prepare, compares and signs.
 * @param {Terms} terms @param {Options} options
 * @param {(choices: unknown, laidOut: { called: Uint8Array, authorized: Uint8Array, beside: Buffer })
 *   => Promise<string>} signCall
 */
export const makeBatchPayload = async (terms, options, signCall) => {
  const of = channelOf(terms, options)
  const { channelId, channels, config, vector, voucherHash } = of
  const known = channels.get(channelId) ?? { charged: 0n, balance: 0n }
  const { balance, charged, unanswered = 0 } = known
  if (unanswered >= cutsMax) {
    const unknown = `${charged} charged by its answers, at most ${signedIn(known)} by what was signed`
    throw new SignatureRefused(`${unanswered} answers of this channel in a row were lost: ${unknown}; send them again`)
  }
  const max = charged + BigInt(terms.amount)
  const voucher = () => {
    const before = signedIn(known)
    channels.set(channelId, { ...known, signed: max > before ? max : before })
    return voucherOf(of, options.secret, max)
  }
  if (max <= balance) return { type: "voucher", channelConfig: config, voucher: voucher() }
  const amount = depositFor(terms, options, max - balance)
  const { batchContract } = terms.extra
  const [payer, most] = [value.address(config.payer), value.i128(amount)]
  const called = call(batchContract, "deposit", [payer, vector, most])
  const below = invocation(call(terms.asset, "transfer", [payer, value.address(batchContract), most]))
  const { payerAuthorizer, salt } = config
  const transaction = await signCall(
    { amount: String(amount), charged: String(charged), payerAuthorizer, salt },
    { called, authorized: invocation(called, [below]), beside: voucherHash(max) }
  )
  const deposit = { amount: String(amount), authorization: { transaction } }
  return { type: "deposit", channelConfig: config, voucher: voucher(), deposit }
}

/** @param {Terms} terms @param {Options} options @param {(known: Channel) => Channel} change */
const changeKnown = (terms, options, change) => {
  if (terms.scheme !== "batch-settlement") return
  const { channelId, channels } = channelOf(terms, options)
  const known = channels.get(channelId)
  if (known !== undefined) channels.set(channelId, change(known))
}

/** Counts answers that were cut. @param {Terms} terms @param {Options} options @param {number} cuts */
export const noteCuts = (terms, options, cuts) =>
  changeKnown(terms, options, (known) => ({ ...known, unanswered: (known.unanswered ?? 0) + cuts }))

/** An answer came, whatever it says. @param {Terms} terms @param {Options} options */
export const noteAnswered = (terms, options) => changeKnown(terms, options, ({ unanswered: _, ...known }) => known)

/** What a buyer sends for a refund of all that is left. @param {Terms} terms @param {Options} options */
export const refundPayload = (terms, options) => {
  const of = channelOf(terms, options)
  const { charged } = of.channels.get(of.channelId) ?? { charged: 0n }
  return { type: "refund", channelConfig: of.config, voucher: voucherOf(of, options.secret, charged) }
}

/**
 * Keeps what a paid request charged: never above what was signed, never below what was charged before.
 * @param {Terms} terms @param {Options} options @param {any} payload @param {any} receipt
 */
export const noteCharged = (terms, options, payload, receipt) => {
  if (terms.scheme !== "batch-settlement") return
  const { channelId, channels } = channelOf(terms, options)
  const before = channels.get(channelId) ?? { charged: 0n, balance: 0n }
  const signed = BigInt(payload.voucher.maxClaimableAmount)
  const { balance, chargedCumulativeAmount: said } = receipt.extra?.channelState ?? {}
  const charged = digits.test(said ?? "") && BigInt(said) < signed ? BigInt(said) : signed
  const deposited = before.balance + BigInt(payload.deposit?.amount ?? 0)
  const isRefunded = payload.type === "refund" && digits.test(balance ?? "")
  const left = charged < before.charged ? before.charged : charged
  channels.set(channelId, {
    charged: left,
    // What was charged stays in the channel, whatever the seller says of a refund: it would be deposited once more.
    balance: !isRefunded ? deposited : BigInt(balance) > left ? BigInt(balance) : left,
    signed: signedIn(before) > signed ? signedIn(before) : signed
  })
}

/**
 * Takes the total of a corrective 402, where a voucher of our own key is for at least as much. `sent`: what the refused
 * request was sent for, and what had been signed before it. What lies between is the voucher just sent, and is no proof
 * of an earlier total.
 * @param {any} required @param {Terms} terms @param {Options} options @param {{ max: bigint, before: bigint }} sent
 * @returns {boolean}
 */
export const noteCorrected = (required, terms, options, sent) => {
  const { channelId, channels, voucherHash } = channelOf(terms, options)
  const shown = required.accepts
    ?.map((/** @type {Terms} */ one) => one.extra)
    .find((/** @type {any} */ extra) => extra?.channelState?.channelId === channelId)
  const { balance, chargedCumulativeAmount: charged } = shown?.channelState ?? {}
  const { signature, signedMaxClaimable: max } = shown?.voucherState ?? {}
  if (![balance, charged, max].every((one) => digits.test(one ?? "")) || !/^[0-9a-f]{128}$/.test(signature ?? ""))
    return false
  if (BigInt(charged) > BigInt(max)) return false
  if (BigInt(max) > sent.before && BigInt(max) <= sent.max) return false
  // What this buyer's own key signs is one signature: any other is not its own, whatever a library accepts.
  if (sign(null, voucherHash(BigInt(max)), privateKeyOf(options.secret)).toString("hex") !== signature) return false
  const larger = (/** @type {bigint} */ a, /** @type {bigint} */ b) => (a > b ? a : b)
  // A seller that says that less is deposited is not believed: what this buyer has deposited it knows itself.
  const deposited = larger(channels.get(channelId)?.balance ?? 0n, BigInt(balance))
  const signed = [sent.max, sent.before, BigInt(max)].reduce(larger)
  // Nor is one whose record was restored, and knows of less than it has answered.
  const before = channels.get(channelId)?.charged ?? 0n
  if (BigInt(charged) < before) return false
  channels.set(channelId, { charged: BigInt(charged), balance: deposited, signed })
  return true
}
