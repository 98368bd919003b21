// @ts-check
// The part of `prepared.mjs` that pays by `batch-settlement`: one deposit, compared like every payment, then one
// voucher per request, which only this file builds. A channel is identified by the seller's terms. The buyer limits the
// deposit and the delay after which it gets its money back without the seller. The buyer accepts a seller's total only
// with a voucher that its own key signed for at least as much, and not with the voucher that it has just sent: it
// cannot see whether the seller accepted that voucher, and a second one would pay twice for one request.
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
 * A buyer's record of a channel, atomic units: charged in total, deposited, and the highest amount signed, stored
 * before the voucher is sent. `unanswered`: number of cut answers in a row. `disputed`: why the seller's last answer
 * contradicts the voucher; while it is set, the buyer signs nothing in this channel.
 * @typedef {{ charged: bigint, balance: bigint, signed?: bigint, unanswered?: number, disputed?: string }} Channel
 */
/**
 * `contracts`: the contracts that the buyer deposits into; without any, the scheme is refused. `depositTimes`: the
 * deposit as a multiple of the price, default 100; a seller's announced minimum is followed up to ten times that.
 * `depositMax`: the maximum of one deposit, default `depositTimes` times `maxAmount`. `withdrawDelayMax`: seconds,
 * default a day. `channels`: the store of channels, default in memory. `salt`: 32 bytes as hex, separates channels with
 * one seller; the default is the origin's `saltOf`, and zeros without a URL.
 * @typedef {{ contracts: ReadonlyArray<string>, depositTimes?: number, depositMax?: bigint, withdrawDelayMax?: number,
 *   channels?: Pick<Map<string, Channel>, "get" | "set">, salt?: string }} BatchOptions
 */

/** The salt of channels with the sellers of one origin. @param {string} origin */
export const saltOf = (origin) => sha256(`tollkeeper channel\n${origin}`).toString("hex")

/** @type {Map<string, Channel>} */
const kept = new Map()
const digits = /^(0|[1-9][0-9]{0,38})$/
/** The ledger's largest amount: the bytes of a larger one, and so its signature, are those of a smaller one. */
const amountMax = 2n ** 127n - 1n
const isAmount = (/** @type {unknown} */ text) => digits.test(String(text ?? "")) && BigInt(String(text)) <= amountMax
const secondsOfDay = 86_400
/** A seller's minimum deposit may be at most this many times the buyer's own deposit. */
export const leastTimes = 10

/**
 * Throws for terms for which this buyer opens no channel.
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
 * The channel with a seller: its terms, its id, and the hash of its vouchers.
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

/** The highest amount signed in vouchers of a channel. @param {Channel | undefined} known */
const signedIn = (known) => known?.signed ?? known?.charged ?? 0n

/**
 * The highest amount signed in the channel with the seller of these terms. @param {Terms} terms @param {Options}
 * options
 */
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
 * A voucher if the deposit is enough, else a deposit with its voucher. `signCall` asks /prepare, compares and signs.
 * @param {Terms} terms @param {Options} options
 * @param {(choices: unknown, laidOut: { called: Uint8Array, authorized: Uint8Array, beside: Buffer })
 *   => Promise<string>} signCall
 */
export const makeBatchPayload = async (terms, options, signCall) => {
  const of = channelOf(terms, options)
  const { channelId, channels, config, vector, voucherHash } = of
  const known = channels.get(channelId) ?? { charged: 0n, balance: 0n }
  const { balance, charged, disputed, unanswered = 0 } = known
  if (disputed !== undefined) throw new SignatureRefused(`the seller's answer contradicts the voucher: ${disputed}`)
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

/** Stores the number of cut answers. @param {Terms} terms @param {Options} options @param {number} cuts */
export const noteCuts = (terms, options, cuts) =>
  changeKnown(terms, options, (known) => ({ ...known, unanswered: (known.unanswered ?? 0) + cuts }))

/** Any answer resets the count. @param {Terms} terms @param {Options} options */
export const noteAnswered = (terms, options) => changeKnown(terms, options, ({ unanswered: _, ...known }) => known)

/** The payload that refunds the whole rest. @param {Terms} terms @param {Options} options */
export const refundPayload = (terms, options) => {
  const of = channelOf(terms, options)
  const { charged } = of.channels.get(of.channelId) ?? { charged: 0n }
  return { type: "refund", channelConfig: of.config, voucher: voucherOf(of, options.secret, charged) }
}

/**
 * The total after the answer to a voucher, or a sentence if the answer contradicts the voucher: its price is the most
 * that was charged, and its base is the total before. An answer without a total counts as the whole voucher.
 * @param {{ channelId: string, max: bigint, price: bigint }} sent @param {any} extra
 * @returns {bigint | string}
 */
export const answeredTotal = ({ channelId, max, price }, extra) => {
  const { chargedAmount, channelState } = extra ?? {}
  const { channelId: about = channelId, chargedCumulativeAmount: total } = channelState ?? {}
  const charge = chargedAmount ?? String(price)
  if (about !== channelId) return "it is about another channel"
  if (!digits.test(charge) || BigInt(charge) > price) return `it charges ${charge} for a price of ${price}`
  const base = max - price
  if (total === undefined) return base + BigInt(charge)
  if (!digits.test(total)) return `its total is ${total}`
  const isFitting =
    chargedAmount === undefined
      ? BigInt(total) >= base && BigInt(total) <= max
      : BigInt(total) === base + BigInt(chargedAmount)
  return isFitting ? BigInt(total) : `its total is ${total}, after ${base} and a charge of ${charge}`
}

/**
 * Stores the total after a paid request, never below the previous one. An answer that contradicts its voucher changes
 * neither total nor balance, and stops the channel.
 * @param {Terms} terms @param {Options} options @param {any} payload @param {any} receipt
 */
export const noteCharged = (terms, options, payload, receipt) => {
  if (terms.scheme !== "batch-settlement") return
  const { channelId, channels } = channelOf(terms, options)
  const before = channels.get(channelId) ?? { charged: 0n, balance: 0n }
  const max = BigInt(payload.voucher.maxClaimableAmount)
  const signed = signedIn(before) > max ? signedIn(before) : max
  const price = payload.type === "refund" ? 0n : BigInt(terms.amount)
  const charged = answeredTotal({ channelId, max, price }, receipt.extra)
  if (typeof charged === "string") return void channels.set(channelId, { ...before, signed, disputed: charged })
  const { balance } = receipt.extra?.channelState ?? {}
  const deposited = before.balance + BigInt(payload.deposit?.amount ?? 0)
  const isRefunded = payload.type === "refund" && digits.test(balance ?? "")
  const left = charged < before.charged ? before.charged : charged
  channels.set(channelId, {
    charged: left,
    // The charged amount stays in the balance, even if the seller reports otherwise: we would deposit it again.
    balance: !isRefunded ? deposited : BigInt(balance) > left ? BigInt(balance) : left,
    signed
  })
}

/**
 * Accepts the total of a corrective 402 if a voucher of our own key covers it. `sent` has the amount of the refused
 * request's voucher, and the highest amount signed before it. A voucher between the two is the one just sent, and does
 * not prove an earlier total.
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
  if (![balance, charged, max].every(isAmount) || !/^[0-9a-f]{128}$/.test(signature ?? "")) return false
  if (BigInt(charged) > BigInt(max)) return false
  if (BigInt(max) > sent.before && BigInt(max) <= sent.max) return false
  // Compare with our own signature: some libraries accept others, and only this one is ours.
  if (sign(null, voucherHash(BigInt(max)), privateKeyOf(options.secret)).toString("hex") !== signature) return false
  const larger = (/** @type {bigint} */ a, /** @type {bigint} */ b) => (a > b ? a : b)
  // Ignore a seller's lower balance: the buyer has its own record of its deposits.
  const deposited = larger(channels.get(channelId)?.balance ?? 0n, BigInt(balance))
  const signed = [sent.max, sent.before, BigInt(max)].reduce(larger)
  // Reject a lower total too: the seller may have restored an old record.
  const before = channels.get(channelId)?.charged ?? 0n
  if (BigInt(charged) < before) return false
  channels.set(channelId, { charged: BigInt(charged), balance: deposited, signed })
  return true
}
