// Basics of the batch contract: the host's functions by their short names, values, amounts of 128 bits, memory and
// errors. Compiled as one text with batch.as, which follows it.
/** A value as host and contract exchange it: 64 bits, the low byte a tag, the rest the value or an object's handle. */
type Val = u64

const ERROR_TAG: u64 = 3
const U32_TAG: u64 = 4
const U64_SMALL_TAG: u64 = 6
const I128_SMALL_TAG: u64 = 11
const U64_OBJECT_TAG: u64 = 64
const I128_OBJECT_TAG: u64 = 69
const BYTES_TAG: u64 = 72
const VEC_TAG: u64 = 75
const ADDRESS_TAG: u64 = 77
/**
 * The zeros of u64 and i128 in their small forms. Initial values are written as numbers: otherwise the compiler would
 * set them in a start function, which the network does not run.
 */
const NO_TIME: Val = U64_SMALL_TAG
const ZERO: Val = I128_SMALL_TAG
/** `balance` and `transfer`: a symbol of up to nine characters is a number, six bits a character. */
const BALANCE: Val = 0x279b19b3a2a0e
const TRANSFER: Val = 0xe779b3e2bab70e
/** Storage whose entries are archived at the end of their life, never lost, and can be restored. */
const PERSISTENT: u64 = 1

// @ts-ignore: decorator
@external("x", "0")
declare function compareObjects(a: Val, b: Val): i64
// @ts-ignore: decorator
@external("x", "1")
declare function emit(topics: Val, data: Val): Val
// @ts-ignore: decorator
@external("x", "4")
declare function closeTime(): Val
// @ts-ignore: decorator
@external("x", "5")
declare function failWith(error: Val): Val
// @ts-ignore: decorator
@external("x", "6")
declare function networkId(): Val
// @ts-ignore: decorator
@external("x", "7")
declare function currentContract(): Val
// @ts-ignore: decorator
@external("i", "_")
declare function u64Object(value: u64): Val
// @ts-ignore: decorator
@external("i", "0")
declare function u64OfObject(object: Val): u64
// @ts-ignore: decorator
@external("i", "6")
declare function i128Object(high: i64, low: u64): Val
// @ts-ignore: decorator
@external("i", "7")
declare function i128Low(object: Val): u64
// @ts-ignore: decorator
@external("i", "8")
declare function i128High(object: Val): i64
// @ts-ignore: decorator
@external("m", "_")
declare function mapNew(): Val
// @ts-ignore: decorator
@external("m", "0")
declare function mapPut(map: Val, key: Val, value: Val): Val
// @ts-ignore: decorator
@external("v", "1")
declare function vecGet(vec: Val, at: Val): Val
// @ts-ignore: decorator
@external("v", "3")
declare function vecLength(vec: Val): Val
// @ts-ignore: decorator
@external("v", "g")
declare function vecFromMemory(from: Val, count: Val): Val
// @ts-ignore: decorator
@external("v", "h")
declare function vecToMemory(vec: Val, to: Val, count: Val): Val
// @ts-ignore: decorator
@external("l", "_")
declare function putData(key: Val, value: Val, storage: u64): Val
// @ts-ignore: decorator
@external("l", "0")
declare function hasData(key: Val, storage: u64): Val
// @ts-ignore: decorator
@external("l", "1")
declare function getData(key: Val, storage: u64): Val
// @ts-ignore: decorator
@external("l", "7")
declare function extendData(key: Val, storage: u64, threshold: Val, extendTo: Val): Val
// @ts-ignore: decorator
@external("d", "_")
declare function call(contract: Val, fn: Val, args: Val): Val
// @ts-ignore: decorator
@external("b", "_")
declare function serialized(value: Val): Val
// @ts-ignore: decorator
@external("b", "8")
declare function bytesLength(object: Val): Val
// @ts-ignore: decorator
@external("b", "j")
declare function symbolFromMemory(from: Val, length: Val): Val
// @ts-ignore: decorator
@external("c", "_")
declare function sha256(bytes: Val): Val
// @ts-ignore: decorator
@external("c", "0")
declare function verifyEd25519(key: Val, message: Val, signature: Val): Val
// @ts-ignore: decorator
@external("a", "0")
declare function requireAuth(address: Val): Val

/** Room for the items of a vector that is made or taken apart. */
const words: usize = memory.data(64, 8)
const letters: usize = memory.data(32, 8)

/** Offset added to an error's number: names the current entry of a claim. */
let errorBase: u32 = 0

// @ts-ignore: decorator
@inline
function u32Val(value: u32): Val {
  return ((value as u64) << 32) | U32_TAG
}

// @ts-ignore: decorator
@inline
function tagOf(value: Val): u64 {
  return value & 0xff
}

function fail(error: u32): void {
  failWith((((errorBase + error) as u64) << 32) | ERROR_TAG)
  unreachable()
}

function demand(holds: bool, error: u32): void {
  if (!holds) fail(error)
}

/** A text of up to 32 letters as a symbol. */
function symbol(text: string): Val {
  const from = changetype<usize>(text)
  const length = load<u32>(from - 4) >> 1
  for (let i: u32 = 0; i < length; i++) store<u8>(letters + i, load<u8>(from + (i << 1)))
  return symbolFromMemory(u32Val(letters as u32), u32Val(length))
}

// @ts-ignore: decorator
@inline
function put(at: u32, word: Val): void {
  store<u64>(words + ((at as usize) << 3), word)
}

// @ts-ignore: decorator
@inline
function wordAt(from: usize, at: u32): Val {
  return load<u64>(from + ((at as usize) << 3))
}

// @ts-ignore: decorator
@inline
function vec(count: u32): Val {
  return vecFromMemory(u32Val(words as u32), u32Val(count))
}

/** A vector of just `count` items, into memory; anything else is `error`. */
function unpack(value: Val, to: usize, count: u32, error: u32): void {
  demand(tagOf(value) == VEC_TAG && vecLength(value) == u32Val(count), error)
  vecToMemory(value, u32Val(to as u32), u32Val(count))
}

function isAddress(value: Val): bool {
  return tagOf(value) == ADDRESS_TAG
}

function isBytes(value: Val, length: u32): bool {
  return tagOf(value) == BYTES_TAG && bytesLength(value) == u32Val(length)
}

function isU64(value: Val): bool {
  return tagOf(value) == U64_SMALL_TAG || tagOf(value) == U64_OBJECT_TAG
}

function isI128(value: Val): bool {
  return tagOf(value) == I128_SMALL_TAG || tagOf(value) == I128_OBJECT_TAG
}

function u64Of(value: Val): u64 {
  return tagOf(value) == U64_SMALL_TAG ? value >> 8 : u64OfObject(value)
}

function u64Val(value: u64): Val {
  return value >> 56 == 0 ? (value << 8) | U64_SMALL_TAG : u64Object(value)
}

/** The upper half of an i128 value, which carries its sign. */
function highOf(value: Val): i64 {
  return tagOf(value) == I128_SMALL_TAG ? (value as i64) >> 63 : i128High(value)
}

/** The lower half of an i128 value. */
function lowOf(value: Val): u64 {
  return tagOf(value) == I128_SMALL_TAG ? ((value as i64) >> 8) as u64 : i128Low(value)
}

function i128Val(high: i64, low: u64): Val {
  const isSmall = (((low as i64) << 8) >> 8) == (low as i64) && high == (low as i64) >> 63
  return isSmall ? (low << 8) | I128_SMALL_TAG : i128Object(high, low)
}

function isLess(a: Val, b: Val): bool {
  const aHigh = highOf(a)
  const bHigh = highOf(b)
  return aHigh < bHigh || (aHigh == bHigh && lowOf(a) < lowOf(b))
}

/** Adds two amounts that are not negative; `AMOUNT_TOO_LARGE` if the sum overflows. */
function sum(a: Val, b: Val): Val {
  const low = lowOf(a) + lowOf(b)
  const high = highOf(a) + highOf(b) + (low < lowOf(a) ? 1 : 0)
  demand(high >= 0, AMOUNT_TOO_LARGE)
  return i128Val(high, low)
}

function difference(a: Val, b: Val): Val {
  const low = lowOf(a) - lowOf(b)
  return i128Val(highOf(a) - highOf(b) - (lowOf(a) < lowOf(b) ? 1 : 0), low)
}
