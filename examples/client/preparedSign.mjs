// @ts-check
// Signs payments for `prepared.mjs`. It asks the facilitator's `/prepare`, builds the same bytes from the seller's
// terms and its own settings, and signs only when they are equal. It uses only the nonce, the expiry and an id of the
// answer, within limits; a facilitator that asks for another recipient, amount, contract, call or a longer life is
// refused. The layout is in `plugins/prepare/README.md`.
import { sign } from "node:crypto"
import { follow } from "./keptPayments.mjs"
import { checkBatchTerms, makeBatchPayload } from "./preparedBatch.mjs"
import {
  accountOf,
  address,
  call,
  i64,
  invocation,
  join,
  ledgersOf,
  limitOf,
  list,
  privateKeyOf,
  sha256,
  SignatureRefused,
  u32,
  value
} from "./preparedBytes.mjs"

/**
 * @typedef {{ scheme: string, network: string, asset: string, amount: string, payTo: string,
 *   maxTimeoutSeconds: number, extra?: any }} Terms
 */
/**
 * `facilitator`: its /prepare is requested. Default: the seller's URL, over HTTPS unless `allowsPlain`, or else this
 * machine's. `apiKey`: for your facilitator or this machine's, never for a seller's URL. `maxAmount`: atomic units, the
 * maximum of one request, by asset; a plain number is in units of the first of `assets`, default USDC. `assets`:
 * contracts of the assets to pay in, default the assets of `maxAmount`, or USDC and XLM of the network. `maxTimeout`:
 * seconds, the maximum life of a signature, default 300. `uptoContracts`: accepted settlement contracts. `rpcUrl`: a
 * ledger RPC, asked only for its newest ledger; without it, the facilitator supplies that number, and a seller's URL is
 * not used. `wallet`: a contract that pays; `sign` returns the XDR that its `__check_auth` accepts as the signature of
 * 32 bytes. `batch`: see `preparedBatch.mjs`.
 * @typedef {{ secret: string, facilitator?: string, maxAmount: import("./preparedBytes.mjs").Limit, network?: string,
 *   assets?: ReadonlyArray<string>, networkPassphrase?: string, uptoContracts?: ReadonlyArray<string>,
 *   rpcUrl?: string, apiKey?: string, allowsPlain?: boolean,
 *   maxTimeout?: number, batch?: import("./preparedBatch.mjs").BatchOptions,
 *   wallet?: { contract: string, sign: (hash: Uint8Array) => Uint8Array | Promise<Uint8Array> } }} Options
 */

/** Maximum distance between two nodes, ledgers. */
const ledgersApart = 3

/** The call, and the part that the payer authorizes. @param {Terms} terms @param {string} payer @param {any} given */
const layout = (terms, payer, { chosen, expires }) => {
  const amount = BigInt(terms.amount)
  if (terms.scheme === "exact") {
    const args = [value.address(payer), value.address(terms.payTo), value.i128(amount)]
    const called = call(terms.asset, "transfer", args)
    return { called, authorized: invocation(called) }
  }
  const { facilitatorAddress, uptoContract } = terms.extra
  const args = [
    ...[payer, terms.payTo, terms.asset].map(value.address),
    value.i128(amount),
    value.u32(chosen.validAfter),
    value.u32(expires.ledger),
    value.address(facilitatorAddress),
    value.bytes(Buffer.from(chosen.settlementId, "hex"))
  ]
  const approve = (/** @type {bigint} */ most) =>
    invocation(
      call(terms.asset, "approve", [
        value.address(payer),
        value.address(uptoContract),
        value.i128(most),
        value.u32(expires.ledger)
      ])
    )
  const authorized = invocation(call(uptoContract, "settle", args), [approve(amount), approve(0n)])
  return { called: call(uptoContract, "settle", [...args, value.i128(amount)]), authorized }
}

/**
 * The 32 bytes to sign, and the envelope around a signature.
 * @param {any} given @param {{ called: Uint8Array, authorized: Uint8Array }} laidOut @param {string} payer
 * @param {string} passphrase
 */
const bytesOf = (given, { authorized, called }, payer, passphrase) => {
  const [nonce, expiry] = [i64(BigInt(given.nonce)), u32(given.expires.ledger)]
  const entry = (/** @type {Uint8Array} */ signature) =>
    join(u32(1), address(payer), nonce, expiry, signature, authorized)
  const envelope = (/** @type {Uint8Array} */ signature) =>
    join(
      ...[u32(2), u32(0), Buffer.alloc(32), u32(100), i64(1n), u32(0), u32(0), u32(1)],
      ...[u32(0), u32(24), u32(0), called, list([entry(signature)]), u32(0), u32(0)]
    ).toString("base64")
  return { hash: sha256(join(u32(9), sha256(passphrase), nonce, expiry, authorized)), envelope }
}

/** Throws for terms that this buyer does not pay. @param {Terms} terms @param {Options} options */
export const checkTerms = (terms, options) => {
  const { network = "stellar:testnet", uptoContracts = [] } = options
  const refuse = (/** @type {string} */ why) => {
    throw new SignatureRefused(why)
  }
  if (terms.network !== network) refuse("the terms are for another network")
  const limit = limitOf(terms.asset, network, options)
  if (limit === undefined) return refuse("the asset is not one that this buyer pays in")
  if (!/^[1-9][0-9]{0,38}$/.test(terms.amount) || BigInt(terms.amount) > limit) refuse("the price is above the limit")
  ledgersOf(terms.maxTimeoutSeconds, options.maxTimeout)
  if (terms.scheme === "batch-settlement") return checkBatchTerms(terms, options.batch)
  if (terms.scheme !== "exact" && terms.scheme !== "upto") refuse(`${terms.scheme} is no scheme of this buyer`)
  if (terms.scheme === "upto" && !uptoContracts.includes(terms.extra?.uptoContract))
    refuse("the settlement contract is not one that this buyer knows")
}

/**
 * Checks the life of a signature. `after`: the last ledger of an earlier payment for the same request.
 * @param {any} given @param {Terms} terms @param {Options} options @param {number} after
 */
const checkLife = async (given, { maxTimeoutSeconds, scheme }, { maxTimeout, rpcUrl }, after) => {
  if (scheme === "upto" && !/^[0-9a-f]{64}$/.test(given.chosen?.settlementId))
    throw new SignatureRefused("the facilitator gives no settlement id")
  const { latestLedger, ledger } = given.expires ?? {}
  const asked =
    rpcUrl === undefined ? undefined : await post(rpcUrl, { jsonrpc: "2.0", id: 1, method: "getLatestLedger" })
  const newest = asked === undefined ? latestLedger : asked.result?.sequence
  const longest = ledgersOf(maxTimeoutSeconds, maxTimeout) + (asked === undefined ? 0 : ledgersApart)
  if (![ledger, newest].every(Number.isSafeInteger) || ledger > newest + longest)
    throw new SignatureRefused(`the signature would live to ledger ${ledger}, longer than the terms say`)
  if (after === Infinity)
    throw new SignatureRefused("a deposit with this seller has no answer yet; send that one again")
  if (newest <= after)
    throw new SignatureRefused(`an earlier payment can land until ledger ${after}; send that one again`)
  const { validAfter = newest } = given.chosen ?? {}
  if (!Number.isSafeInteger(validAfter) || validAfter > newest + ledgersApart)
    throw new SignatureRefused("the signature would begin later")
  if (!/^-?[0-9]{1,19}$/.test(given.nonce)) throw new SignatureRefused("the nonce is no number")
}

/** @param {string} url @param {unknown} body @param {Record<string, string>} [headers] */
const post = async (url, body, headers = {}) => {
  const response = await follow(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body)
  })
  // A redirect that is not followed need not be JSON.
  const answer = /** @type {any} */ (response.ok ? await response.json() : await response.json().catch(() => ({})))
  if (!response.ok) throw new Error(`${url} answers ${response.status}: ${answer.error ?? ""} ${answer.message ?? ""}`)
  return answer
}

/**
 * The facilitator for /prepare, and whether the seller chose it: such a URL gets no API key and no plain request.
 * @param {Terms} terms @param {Options} options
 */
const prepareAt = ({ extra }, { allowsPlain = false, facilitator, rpcUrl }) => {
  const named = facilitator === undefined ? extra?.prepareUrl : undefined
  if (named === undefined) return { isNamed: false, prepareUrl: `${facilitator ?? "http://127.0.0.1:4022"}/prepare` }
  if (!URL.canParse(named) || !(allowsPlain ? /^https?:$/ : /^https:$/).test(new URL(named).protocol))
    throw new SignatureRefused("the seller names a /prepare that is not asked over HTTPS")
  if (rpcUrl === undefined)
    throw new SignatureRefused("the newest ledger would be the word of one that the seller names")
  return { isNamed: true, prepareUrl: named }
}

/**
 * Asks /prepare, compares, and signs. Returns the signed envelope and its last ledger. `layOut` builds the call from
 * the answer.
 * @param {Terms} terms @param {Options} options @param {number} after @param {unknown} choices
 * @param {(given: any) => { called: Uint8Array, authorized: Uint8Array, beside?: Buffer }} layOut
 */
const signCall = async (terms, options, after, choices, layOut) => {
  const { account, key } = accountOf(options.secret)
  const payer = options.wallet?.contract ?? account
  const { isNamed, prepareUrl } = prepareAt(terms, options)
  const headers = options.apiKey === undefined || isNamed ? {} : { authorization: `Bearer ${options.apiKey}` }
  const body = { x402Version: 2, paymentRequirements: terms, payer, ...(choices === undefined ? {} : { choices }) }
  const given = await post(prepareUrl, body, /** @type {any} */ (headers))
  await checkLife(given, terms, options, after)
  const passphrase = options.networkPassphrase ?? "Test SDF Network ; September 2015"
  const laidOut = layOut(given)
  const { envelope, hash } = bytesOf(given, laidOut, payer, passphrase)
  const beside = laidOut.beside?.toString("hex")
  const isSame = given.toSign?.hash === hash.toString("hex") && given.toSign?.beside?.voucher?.hash === beside
  if (!isSame || given.transaction !== envelope(value.void))
    throw new SignatureRefused("the facilitator asks for another signature than the terms do")
  const expires = /** @type {number} */ (given.expires.ledger)
  if (options.wallet !== undefined) return { transaction: envelope(await options.wallet.sign(hash)), expires }
  const signature = sign(null, hash, privateKeyOf(options.secret))
  const fields = [value.symbol("public_key"), value.bytes(key), value.symbol("signature"), value.bytes(signature)]
  return { transaction: envelope(join(u32(16), u32(1), u32(1), u32(17), u32(1), u32(2), ...fields)), expires }
}

/**
 * The signed payload of one payment, and the last ledger in which it can land (a voucher has no limit). Throws
 * `SignatureRefused` before signing if the facilitator's bytes differ from the terms, or while `after`, the last ledger
 * of an earlier payment, has not closed.
 * @param {Terms} terms @param {Options} options @param {number} [after]
 * @returns {Promise<{ payload: any, expires?: number }>}
 */
export const signUntil = async (terms, options, after = 0) => {
  checkTerms(terms, options)
  const payer = options.wallet?.contract ?? accountOf(options.secret).account
  if (terms.scheme !== "batch-settlement") {
    const layOut = (/** @type {any} */ given) => layout(terms, payer, given)
    const { expires, transaction } = await signCall(terms, options, after, undefined, layOut)
    return { payload: { transaction }, expires }
  }
  let expires = /** @type {number | undefined} */ (undefined)
  const payload = await makeBatchPayload(terms, options, async (choices, laidOut) => {
    const signed = await signCall(terms, options, after, choices, () => laidOut)
    expires = signed.expires
    return signed.transaction
  })
  return { payload, ...(expires === undefined ? {} : { expires }) }
}
