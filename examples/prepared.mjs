// @ts-check
// A buyer without an SDK and without a ledger RPC of its own: Node and Deno alone. It asks the facilitator's `/prepare`
// what to sign, builds the same bytes from the seller's terms and its own settings, and signs only when they are equal.
// Of the answer it takes the nonce, the expiry and an id, each of them bounded; a facilitator that asks for another
// recipient, amount, contract, call or a longer life is refused. The layout is `plugins/prepare/README.md`.
//
//   BUYER_SECRET=S… node examples/prepared.mjs http://127.0.0.1:3000/weather
import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto"

/**
 * @typedef {{ scheme: string, network: string, asset: string, amount: string, payTo: string,
 *   maxTimeoutSeconds: number, extra?: any }} Terms
 */
/**
 * `facilitator`: whose /prepare is asked; absent: the one that the seller names, else this machine's. `maxAmount`:
 * atomic units, the most for one request. `uptoContracts`: settlement contracts that the buyer knows. `rpcUrl`: a
 * ledger RPC, asked for its newest ledger alone; without one, that number is the facilitator's.
 * @typedef {{ secret: string, facilitator?: string, maxAmount: bigint, network?: string,
 *   assets?: ReadonlyArray<string>, networkPassphrase?: string, uptoContracts?: ReadonlyArray<string>,
 *   rpcUrl?: string, apiKey?: string }} Options
 */

/** What was asked to be signed is not what the terms say; nothing was signed. */
export class SignatureRefused extends Error {}

/** Seconds that a buyer assumes for a ledger, and ledgers that two nodes may differ by. */
const secondsPerLedger = 5
const ledgersApart = 3

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

/** Version byte and 32 bytes of an address or a seed. @param {string} text */
const strkey = (text) => {
  let bits = 0n
  for (const letter of text) {
    const value = alphabet.indexOf(letter)
    if (value < 0) throw new SignatureRefused("an address is not base32")
    bits = (bits << 5n) | BigInt(value)
  }
  const bytes = Buffer.from(bits.toString(16).padStart(70, "0"), "hex")
  if (text.length !== 56 || bytes.length !== 35) throw new SignatureRefused("an address has another length")
  let crc = 0
  for (const byte of bytes.subarray(0, 33)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff
  }
  if (bytes.readUInt16LE(33) !== crc) throw new SignatureRefused("an address has a wrong checksum")
  return { version: bytes[0] ?? 0, key: bytes.subarray(1, 33) }
}

/** @param {number} value */
const u32 = (value) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
/** @param {bigint} value */
const i64 = (value) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt.asUintN(64, value))
  return bytes
}
/** @param {...Uint8Array} parts */
const join = (...parts) => Buffer.concat(parts)
/** @param {Uint8Array} bytes */
const opaque = (bytes) => join(u32(bytes.length), bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4))
/** @param {ReadonlyArray<Uint8Array>} items */
const list = (items) => join(u32(items.length), ...items)
/** @param {string} text */
const address = (text) => {
  const { key, version } = strkey(text)
  if (version === 6 << 3) return join(u32(0), u32(0), key)
  if (version === 2 << 3) return join(u32(1), key)
  throw new SignatureRefused("an address is neither an account nor a contract")
}
const value = {
  address: (/** @type {string} */ text) => join(u32(18), address(text)),
  i128: (/** @type {bigint} */ amount) => join(u32(10), i64(amount >> 64n), i64(amount)),
  u32: (/** @type {number} */ number) => join(u32(3), u32(number)),
  bytes: (/** @type {Uint8Array} */ bytes) => join(u32(13), opaque(bytes)),
  symbol: (/** @type {string} */ text) => join(u32(15), opaque(Buffer.from(text))),
  void: u32(1)
}
/** @param {string} contract @param {string} name @param {ReadonlyArray<Uint8Array>} args */
const call = (contract, name, args) => join(address(contract), opaque(Buffer.from(name)), list(args))
/** @param {Uint8Array} called @param {ReadonlyArray<Uint8Array>} [below] */
const invocation = (called, below = []) => join(u32(0), called, list(below))

/** The call, and what the payer authorizes of it. @param {Terms} terms @param {string} payer @param {any} given */
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

const sha256 = (/** @type {string | Uint8Array} */ bytes) => createHash("sha256").update(bytes).digest()

/**
 * The 32 bytes to sign, and the envelope around a signature.
 * @param {any} given @param {Terms} terms @param {string} payer @param {string} passphrase
 */
const bytesOf = (given, terms, payer, passphrase) => {
  const { authorized, called } = layout(terms, payer, given)
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

/** Throws for terms that this buyer would not pay. @param {Terms} terms @param {Options} options */
const checkTerms = (terms, { assets, maxAmount, network = "stellar:testnet", uptoContracts = [] }) => {
  const refuse = (/** @type {string} */ why) => {
    throw new SignatureRefused(why)
  }
  if (terms.network !== network) refuse("the terms are for another network")
  if (!/^[1-9][0-9]{0,38}$/.test(terms.amount) || BigInt(terms.amount) > maxAmount)
    refuse("the price is above the limit")
  if (assets !== undefined && !assets.includes(terms.asset)) refuse("the asset is not one that this buyer pays in")
  if (terms.scheme !== "exact" && terms.scheme !== "upto") refuse(`${terms.scheme} is no scheme of this buyer`)
  if (terms.scheme === "upto" && !uptoContracts.includes(terms.extra?.uptoContract))
    refuse("the settlement contract is not one that this buyer knows")
}

/** @param {any} given @param {Terms} terms @param {Options} options */
const checkLife = async (given, { maxTimeoutSeconds, scheme }, { rpcUrl }) => {
  if (scheme === "upto" && !/^[0-9a-f]{64}$/.test(given.chosen?.settlementId))
    throw new SignatureRefused("the facilitator gives no settlement id")
  const { latestLedger, ledger } = given.expires ?? {}
  const asked =
    rpcUrl === undefined ? undefined : await post(rpcUrl, { jsonrpc: "2.0", id: 1, method: "getLatestLedger" })
  const newest = asked?.result?.sequence ?? latestLedger
  const longest = Math.ceil(maxTimeoutSeconds / secondsPerLedger) + (asked === undefined ? 0 : ledgersApart)
  if (![ledger, newest].every(Number.isSafeInteger) || ledger > newest + longest)
    throw new SignatureRefused(`the signature would live to ledger ${ledger}, longer than the terms say`)
  const { validAfter = newest } = given.chosen ?? {}
  if (!Number.isSafeInteger(validAfter) || validAfter > newest + ledgersApart)
    throw new SignatureRefused("the signature would begin later")
  if (!/^-?[0-9]{1,19}$/.test(given.nonce)) throw new SignatureRefused("the nonce is no number")
}

/** @param {string} url @param {unknown} body @param {Record<string, string>} [headers] */
const post = async (url, body, headers = {}) => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body)
  })
  const answer = /** @type {any} */ (await response.json())
  if (!response.ok) throw new Error(`${url} answers ${response.status}: ${answer.error} ${answer.message ?? ""}`)
  return answer
}

/** PKCS #8 of an ed25519 seed. @param {string} secret */
const privateKeyOf = (secret) => {
  const der = join(Buffer.from("302e020100300506032b657004220420", "hex"), strkey(secret).key)
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" })
}

/** The account of a seed, G…; its raw key beside it. @param {string} secret */
export const accountOf = (secret) => {
  const key = createPublicKey(privateKeyOf(secret)).export({ format: "der", type: "spki" }).subarray(-32)
  const versioned = join(Buffer.from([6 << 3]), key)
  let crc = 0
  for (const byte of versioned) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff
  }
  let bits = BigInt(`0x${join(versioned, Buffer.from([crc & 0xff, crc >> 8])).toString("hex")}`)
  let text = ""
  for (let at = 0; at < 56; at++, bits >>= 5n) text = alphabet[Number(bits & 31n)] + text
  return { account: text, key }
}

/**
 * The signed payload of one payment. Throws `SignatureRefused` before anything is signed when the facilitator asks for
 * another signature than the terms do.
 * @param {Terms} terms @param {Options} options
 */
export const signPrepared = async (terms, options) => {
  checkTerms(terms, options)
  const { account, key } = accountOf(options.secret)
  const named = terms.extra?.prepareUrl ?? "http://127.0.0.1:4022/prepare"
  const prepareUrl = options.facilitator === undefined ? named : `${options.facilitator}/prepare`
  const headers = options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` }
  const body = { x402Version: 2, paymentRequirements: terms, payer: account }
  const given = await post(prepareUrl, body, /** @type {any} */ (headers))
  await checkLife(given, terms, options)
  const passphrase = options.networkPassphrase ?? "Test SDF Network ; September 2015"
  const { envelope, hash } = bytesOf(given, terms, account, passphrase)
  if (given.toSign?.hash !== hash.toString("hex") || given.transaction !== envelope(value.void))
    throw new SignatureRefused("the facilitator asks for another signature than the terms do")
  const signature = sign(null, hash, privateKeyOf(options.secret))
  const fields = [value.symbol("public_key"), value.bytes(key), value.symbol("signature"), value.bytes(signature)]
  const signed = join(u32(16), u32(1), u32(1), u32(17), u32(1), u32(2), ...fields)
  return { transaction: envelope(signed) }
}

const encode = (/** @type {unknown} */ content) => Buffer.from(JSON.stringify(content)).toString("base64")
const decode = (/** @type {string} */ header) => JSON.parse(Buffer.from(header, "base64").toString("utf8"))

/**
 * Gets `url` and pays on a 402. A pending payment is sent again, never signed again.
 * @param {string} url @param {Options} options
 */
export const pay = async (url, options) => {
  const unpaid = await fetch(url)
  if (unpaid.status !== 402) return { response: unpaid }
  const header = unpaid.headers.get("payment-required")
  const required = header === null ? /** @type {any} */ (await unpaid.json()) : decode(header)
  const network = options.network ?? "stellar:testnet"
  const accepted = required.accepts.find((/** @type {Terms} */ one) => one.network === network)
  if (accepted === undefined) throw new SignatureRefused(`${url} takes nothing on ${network}`)
  const payload = await signPrepared(accepted, options)
  const { extensions, resource } = required
  const payment = encode({ x402Version: 2, payload, resource, accepted, ...(extensions && { extensions }) })
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(url, { headers: { "payment-signature": payment } })
    const sent = response.headers.get("payment-response")
    const receipt = sent === null ? undefined : decode(sent)
    const isPending = /settlement_pending|status_unknown/.test(receipt?.errorReason ?? "")
    if (!isPending || attempt === 20) return { response, receipt, payment }
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
}

const [, program, page] = process.argv
if (page !== undefined && program?.endsWith("prepared.mjs")) {
  const { BUYER_SECRET: secret, FACILITATOR_URL, LEDGER_RPC_URL: rpcUrl, NETWORK, UPTO_CONTRACT } = process.env
  if (secret === undefined) throw new Error("set BUYER_SECRET to the seed of a funded account")
  const { receipt, response } = await pay(page, {
    secret,
    ...(FACILITATOR_URL && { facilitator: FACILITATOR_URL }),
    maxAmount: 1_000_000n,
    ...(NETWORK && { network: NETWORK }),
    ...(rpcUrl && { rpcUrl }),
    ...(UPTO_CONTRACT && { uptoContracts: [UPTO_CONTRACT] })
  })
  console.log(response.status, await response.text())
  if (receipt !== undefined) console.log(receipt)
}
