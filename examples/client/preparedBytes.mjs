// @ts-check
// Writes the bytes that a buyer signs, word by word: addresses, values and invocations as XDR, keys and hashes. Node
// and Deno only. `prepared.mjs` and `preparedBatch.mjs` build payments from them; the layout is in
// `plugins/prepare/README.md`.
import { createHash, createPrivateKey, createPublicKey } from "node:crypto"

/** The requested signature does not match the terms; nothing was signed. */
export class SignatureRefused extends Error {}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

/** Version byte and 32 bytes of an address or a seed. @param {string} text */
export const strkey = (text) => {
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
export const u32 = (value) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
/** @param {bigint} value */
export const i64 = (value) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt.asUintN(64, value))
  return bytes
}
/** @param {...Uint8Array} parts */
export const join = (...parts) => Buffer.concat(parts)
/** @param {Uint8Array} bytes */
export const opaque = (bytes) => join(u32(bytes.length), bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4))
/** @param {ReadonlyArray<Uint8Array>} items */
export const list = (items) => join(u32(items.length), ...items)
/** @param {string} text */
export const address = (text) => {
  const { key, version } = strkey(text)
  if (version === 6 << 3) return join(u32(0), u32(0), key)
  if (version === 2 << 3) return join(u32(1), key)
  throw new SignatureRefused("an address is neither an account nor a contract")
}
export const value = {
  address: (/** @type {string} */ text) => join(u32(18), address(text)),
  u64: (/** @type {bigint} */ number) => join(u32(5), i64(number)),
  i128: (/** @type {bigint} */ amount) => {
    // A larger one would have the bytes of a smaller one, and so its signatures.
    if (BigInt.asIntN(128, amount) !== amount) throw new SignatureRefused("an amount is above the ledger's largest")
    return join(u32(10), i64(amount >> 64n), i64(amount))
  },
  u32: (/** @type {number} */ number) => join(u32(3), u32(number)),
  bytes: (/** @type {Uint8Array} */ bytes) => join(u32(13), opaque(bytes)),
  symbol: (/** @type {string} */ text) => join(u32(15), opaque(Buffer.from(text))),
  vec: (/** @type {ReadonlyArray<Uint8Array>} */ items) => join(u32(16), u32(1), list(items)),
  void: u32(1)
}
/** @param {string} contract @param {string} name @param {ReadonlyArray<Uint8Array>} args */
export const call = (contract, name, args) => join(address(contract), opaque(Buffer.from(name)), list(args))
/** @param {Uint8Array} called @param {ReadonlyArray<Uint8Array>} [below] */
export const invocation = (called, below = []) => join(u32(0), called, list(below))

export const sha256 = (/** @type {string | Uint8Array} */ bytes) => createHash("sha256").update(bytes).digest()

/** PKCS #8 of an ed25519 seed. @param {string} secret */
export const privateKeyOf = (secret) => {
  const der = join(Buffer.from("302e020100300506032b657004220420", "hex"), strkey(secret).key)
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" })
}

/** @param {number} version @param {Uint8Array} key */
const strkeyText = (version, key) => {
  const versioned = join(Buffer.from([version]), key)
  let crc = 0
  for (const byte of versioned) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff
  }
  let bits = BigInt(`0x${join(versioned, Buffer.from([crc & 0xff, crc >> 8])).toString("hex")}`)
  let text = ""
  for (let at = 0; at < 56; at++, bits >>= 5n) text = alphabet[Number(bits & 31n)] + text
  return text
}

/** A seed, S…, of 32 bytes. @param {Uint8Array} bytes */
export const seedOf = (bytes) => strkeyText(18 << 3, bytes)

/** The account of a seed, G…, and its raw key. @param {string} secret */
export const accountOf = (secret) => {
  const key = createPublicKey(privateKeyOf(secret)).export({ format: "der", type: "spki" }).subarray(-32)
  return { account: strkeyText(6 << 3, key), key }
}

/**
 * Lifetime of a signature by its terms, in ledgers of five seconds. Throws for terms of more than `most` seconds.
 * @param {unknown} seconds @param {number} [most]
 */
export const ledgersOf = (seconds, most = 300) => {
  if (!Number.isSafeInteger(seconds) || Number(seconds) < 1 || Number(seconds) > most)
    throw new SignatureRefused(`the terms' time is not of 1 to ${most} seconds`)
  return Math.ceil(Number(seconds) / 5)
}

/**
 * A buyer's default assets: USDC and XLM of a known network, in either spelling. A limit is in their units; a unit of
 * another asset may have any value.
 * @param {string} network @returns {ReadonlyArray<string>}
 */
export const usualAssets = (network) => {
  if (/^(stellar|ledger):testnet$/.test(network))
    return [
      "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
      "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC"
    ]
  if (/^(stellar|ledger):pubnet$/.test(network))
    return [
      "CCW67TSZV3SSS2HXMBQ5JFGCKJNXKZM7UQUWUZPUTHXSTZLEO7SJMI75",
      "CAS3J7GYLGXMF6TDJBBYYSE3HQ6BBSMLNUQ34T6TZMYMW2EVH34XOWMA"
    ]
  return []
}

/** Maximum atomic units of one request, by asset. @typedef {bigint | Readonly<Record<string, bigint>>} Limit */

/**
 * The limit in an asset; undefined if the buyer does not pay in it. A plain limit is in units of the first asset, and
 * does not apply to others.
 * @param {string} asset @param {string} network @param {{ maxAmount: Limit, assets?: ReadonlyArray<string> }} options
 */
export const limitOf = (asset, network, { assets, maxAmount }) => {
  const isPlain = typeof maxAmount === "bigint"
  const known = assets ?? (isPlain ? usualAssets(network) : Object.keys(maxAmount))
  if (!known.includes(asset)) return undefined
  if (isPlain) return asset === known[0] ? maxAmount : undefined
  return Object.hasOwn(maxAmount, asset) ? maxAmount[asset] : undefined
}
