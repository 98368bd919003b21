// @ts-check
// Reads the single contract call of a Stellar transaction, and the authorizations signed for it, from the envelope's
// XDR. Every length and kind is checked; anything except one contract call reads as undefined. Node and Deno only.

const base32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
const u32 = (/** @type {number} */ value) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** Maximum nesting of values and invocations. */
const depthMax = 100

/** An address in XDR: `G…` or `C…`. @param {string} text */
export const addressBytes = (text) => {
  if (!/^[GC][A-Z2-7]{55}$/.test(text)) throw new Error("an address is G… or C… of 56 characters")
  const bits = [...text].map((one) => base32.indexOf(one).toString(2).padStart(5, "0")).join("")
  const key = Buffer.from(
    /** @type {RegExpMatchArray} */ (bits.match(/.{8}/g)).map((one) => Number.parseInt(one, 2))
  ).subarray(1, 33)
  return Buffer.concat([text.startsWith("G") ? Buffer.alloc(8) : u32(1), key])
}

/** A symbol or a string in XDR. @param {string} text */
const textBytes = (text) =>
  Buffer.concat([u32(text.length), Buffer.from(text), Buffer.alloc((4 - (text.length % 4)) % 4)])

/** The value of a token's amount. @param {bigint} amount */
const amountBytes = (amount) => {
  const bytes = Buffer.alloc(20)
  bytes.writeUInt32BE(10)
  bytes.writeBigInt64BE(BigInt.asIntN(64, amount >> 64n), 4)
  bytes.writeBigUInt64BE(BigInt.asUintN(64, amount), 12)
  return bytes
}

/**
 * The call `transfer(payer, payTo, amount)` of an asset, in the form of transactions and authorizations.
 * @param {{ asset: string, payTo: string, amount: string }} terms @param {Buffer} payer as XDR
 */
export const transferBytes = ({ amount, asset, payTo }, payer) =>
  Buffer.concat([
    ...[addressBytes(asset), textBytes("transfer"), u32(3), u32(18), payer, u32(18)],
    ...[addressBytes(payTo), amountBytes(BigInt(amount))]
  ])

/** A cursor over XDR; throws on unexpected data. */
class Cursor {
  /** @param {Buffer} bytes */
  constructor(bytes) {
    this.bytes = bytes
    this.at = 0
  }
  /** @param {number} length */
  take(length) {
    const end = this.at + length
    if (end > this.bytes.length) throw new Error("the XDR ends early")
    const taken = this.bytes.subarray(this.at, end)
    this.at = end
    return taken
  }
  u32() {
    return this.take(4).readUInt32BE()
  }
  i64() {
    return this.take(8).readBigInt64BE()
  }
  text() {
    const length = this.u32()
    this.take(length + ((4 - (length % 4)) % 4))
  }
  /** @param {() => void} read */
  optional(read) {
    if (this.u32() === 1) read()
  }
  /** @param {() => void} read */
  list(read) {
    for (let left = this.u32(); left > 0; left--) read()
  }
  /** The bytes that a read consumes. @param {() => void} read */
  slice(read) {
    const from = this.at
    read()
    return this.bytes.subarray(from, this.at)
  }
  /** Reads by kind; an unknown one throws. @param {Record<number, () => void>} reads */
  pick(reads) {
    const read = reads[this.u32()]
    if (read === undefined) throw new Error("an unknown kind")
    read()
  }
  key() {
    this.pick({ 0: () => this.take(32) })
  }
  muxed() {
    this.pick({ 0: () => this.take(32), 256: () => this.take(40) })
  }
  address() {
    const hash = () => this.take(32)
    this.pick({ 0: () => this.key(), 1: hash, 2: () => this.take(40), 3: () => this.key(), 4: hash })
  }
  /** @param {number} [depth] */
  value(depth = 0) {
    if (depth > depthMax) throw new Error("nested too deep")
    const bytes = (/** @type {number} */ count) => () => this.take(count)
    const inner = () => this.value(depth + 1)
    const pair = () => {
      inner()
      inner()
    }
    const text = () => this.text()
    this.pick({
      ...{ 0: bytes(4), 1: bytes(0), 2: bytes(8), 3: bytes(4), 4: bytes(4), 5: bytes(8), 6: bytes(8), 7: bytes(8) },
      ...{ 8: bytes(8), 9: bytes(16), 10: bytes(16), 11: bytes(32), 12: bytes(32), 13: text, 14: text, 15: text },
      16: () => this.optional(() => this.list(inner)),
      17: () => this.optional(() => this.list(pair)),
      18: () => this.address(),
      19: () => {
        this.pick({ 0: bytes(32), 1: bytes(0) })
        this.optional(() => this.list(pair))
      },
      20: bytes(0),
      21: bytes(8)
    })
  }
  call() {
    this.address()
    this.text()
    this.list(() => this.value())
  }
  /** The authorized call, and the number of calls below it. @param {number} [depth] */
  invocation(depth = 0) {
    if (depth > depthMax) throw new Error("nested too deep")
    let below = 0
    const called = this.slice(() => this.pick({ 0: () => this.call() })).subarray(4)
    this.list(() => {
      below += 1
      this.invocation(depth + 1)
    })
    return { called, below }
  }
  /** @returns {{ payer?: Buffer, nonce?: bigint, expiry?: number, called: Buffer, below: number }} */
  authorization() {
    const signed = /** @type {{ payer?: Buffer, nonce?: bigint, expiry?: number }} */ ({})
    const byAddress = () => {
      signed.payer = this.slice(() => this.address())
      signed.nonce = this.i64()
      signed.expiry = this.u32()
      this.value()
    }
    this.pick({ 0: () => undefined, 1: byAddress, 2: byAddress })
    return { ...signed, ...this.invocation() }
  }
  conditions() {
    const times = () => this.take(16)
    const signer = () =>
      this.pick({
        ...{ 0: () => this.take(32), 1: () => this.take(32), 2: () => this.take(32) },
        3: () => {
          this.take(32)
          this.text()
        }
      })
    this.pick({
      0: () => undefined,
      1: times,
      2: () => {
        this.optional(times)
        this.optional(() => this.take(8))
        this.optional(() => this.take(8))
        this.take(12)
        this.list(signer)
      }
    })
  }
  memo() {
    const hash = () => this.take(32)
    this.pick({ 0: () => undefined, 1: () => this.text(), 2: () => this.take(8), 3: hash, 4: hash })
  }
}

/**
 * The contract call of a transaction and its authorizations. An entry without `payer` is the transaction's own source.
 * @param {Buffer} envelope XDR, with a fee bump around it or without
 * @returns {{ called: Buffer, entries: Array<ReturnType<Cursor["authorization"]>> } | undefined}
 */
export const signedCall = (envelope) => {
  const cursor = new Cursor(envelope)
  let called = /** @type {Buffer | undefined} */ (undefined)
  const entries = /** @type {Array<ReturnType<Cursor["authorization"]>>} */ ([])
  const transaction = () => {
    cursor.muxed()
    cursor.take(12)
    cursor.conditions()
    cursor.memo()
    if (cursor.u32() > 1) throw new Error("more than one operation")
    cursor.optional(() => cursor.muxed())
    cursor.pick({
      24: () => {
        called = cursor.slice(() => cursor.pick({ 0: () => cursor.call() })).subarray(4)
        cursor.list(() => void entries.push(cursor.authorization()))
      }
    })
  }
  try {
    cursor.pick({
      2: transaction,
      5: () => {
        cursor.muxed()
        cursor.take(8)
        cursor.pick({ 2: transaction })
      }
    })
  } catch {
    return undefined
  }
  return called === undefined ? undefined : { called, entries }
}

/**
 * Payer, nonce and last ledger of a payment: the only authorization by an address in its envelope.
 * @param {any} payment
 */
export const authorizationOf = (payment) => {
  const transaction = payment?.payload?.transaction
  if (typeof transaction !== "string") return undefined
  const found = signedCall(Buffer.from(transaction, "base64"))
  const [entry, other] = found?.entries ?? []
  if (found === undefined || other !== undefined) return undefined
  const { below, called, expiry, nonce, payer } = entry ?? {}
  if (payer === undefined || nonce === undefined || expiry === undefined || called === undefined) return undefined
  return { payer, nonce, expiry, called, below: below ?? 0, isWhole: found.called.equals(called) }
}
