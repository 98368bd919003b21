// The settlement contract of the `upto` scheme: one function, no owner, no upgrade; it never holds tokens. The payer
// signs a maximum, a recipient, a window of ledgers, the facilitator and an id, but not the amount. The facilitator
// signs the same call with the amount, at most that maximum. The token moves directly from the payer to the recipient.
// A zero amount calls no token but still uses up the authorization. A failure reverts everything, including the spent
// id. This file is AssemblyScript, compiled to the wasm next to it; it has not been audited.
/** A value as host and contract exchange it: 64 bits, the low byte a tag, the rest the value or the handle of an object. */
type Val = u64

const ERROR_TAG: u64 = 3
const U32_TAG: u64 = 4
const I128_SMALL_TAG: u64 = 11
const I128_OBJECT_TAG: u64 = 69
const BYTES_TAG: u64 = 72
const ADDRESS_TAG: u64 = 77
/** The i128 zero in its small form. */
const ZERO: Val = I128_SMALL_TAG
/** The symbols of up to nine characters are numbers too: six bits a character. */
const APPROVE: Val = 0x26d75df4eea0e
const BALANCE: Val = 0x279b19b3a2a0e
/** Storage whose entries are deleted after their last ledger. */
const TEMPORARY: u64 = 0

// The contract's errors. They begin at 101 because a token's own errors, 1 to 15 for the asset contract, come through.
const INVALID_ARGUMENT: u32 = 101
const INVALID_MAXIMUM: u32 = 102
const NEGATIVE_AMOUNT: u32 = 103
const EXCEEDS_MAXIMUM: u32 = 104
const NOT_YET_VALID: u32 = 105
const EXPIRED: u32 = 106
const DEADLINE_TOO_FAR: u32 = 107
const SAME_PARTY: u32 = 108
const ALREADY_SETTLED: u32 = 109
const MOVED_OTHERWISE: u32 = 110

/** Ledgers from a settlement to its deadline at most: about 30 days, well within the life that any entry may have. */
const LEDGERS_MAX: u32 = 518_400

// What the contract imports of the host, by the host's short names.
// @ts-ignore: decorator
@external("x", "0")
declare function compareObjects(a: Val, b: Val): i64
// @ts-ignore: decorator
@external("x", "1")
declare function emit(topics: Val, data: Val): Val
// @ts-ignore: decorator
@external("x", "3")
declare function ledgerSequence(): Val
// @ts-ignore: decorator
@external("x", "5")
declare function failWith(error: Val): Val
// @ts-ignore: decorator
@external("x", "7")
declare function currentContract(): Val
// @ts-ignore: decorator
@external("i", "7")
declare function i128Low(object: Val): u64
// @ts-ignore: decorator
@external("i", "8")
declare function i128High(object: Val): i64
// @ts-ignore: decorator
@external("m", "9")
declare function mapFromMemory(keys: Val, values: Val, count: Val): Val
// @ts-ignore: decorator
@external("v", "g")
declare function vecFromMemory(from: Val, count: Val): Val
// @ts-ignore: decorator
@external("l", "_")
declare function putData(key: Val, value: Val, storage: u64): Val
// @ts-ignore: decorator
@external("l", "0")
declare function hasData(key: Val, storage: u64): Val
// @ts-ignore: decorator
@external("l", "7")
declare function extendData(key: Val, storage: u64, threshold: Val, extendTo: Val): Val
// @ts-ignore: decorator
@external("d", "_")
declare function call(contract: Val, fn: Val, args: Val): Val
// @ts-ignore: decorator
@external("b", "8")
declare function bytesLength(object: Val): Val
// @ts-ignore: decorator
@external("b", "j")
declare function symbolFromMemory(from: Val, length: Val): Val
// @ts-ignore: decorator
@external("a", "_")
declare function requireAuthForArgs(address: Val, args: Val): Val
// @ts-ignore: decorator
@external("a", "0")
declare function requireAuth(address: Val): Val

/** Room for the arguments of the calls and for the event: at most nine words at a time. */
const words: usize = memory.data(72, 8)
const transferFrom: usize = memory.data<u8>([
  0x74, 0x72, 0x61, 0x6e, 0x73, 0x66, 0x65, 0x72, 0x5f, 0x66, 0x72, 0x6f, 0x6d
])
const uptoSettled: usize = memory.data<u8>([
  0x75, 0x70, 0x74, 0x6f, 0x5f, 0x73, 0x65, 0x74, 0x74, 0x6c, 0x65, 0x64
])
/** `actual`, `facilitator`, `max`, `settlement_id`: ascending, as the keys of a map must be. */
const fieldNames: usize = memory.data<u8>([
  0x61, 0x63, 0x74, 0x75, 0x61, 0x6c, 0x66, 0x61, 0x63, 0x69, 0x6c, 0x69, 0x74, 0x61, 0x74, 0x6f, 0x72, 0x6d, 0x61,
  0x78, 0x73, 0x65, 0x74, 0x74, 0x6c, 0x65, 0x6d, 0x65, 0x6e, 0x74, 0x5f, 0x69, 0x64
])
/** Where each name of the map begins and how long it is. */
const fields: usize = memory.data(32, 8)

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

/** The number of a u32 value; the caller has checked the tag. */
// @ts-ignore: decorator
@inline
function u32Of(value: Val): u32 {
  return (value >> 32) as u32
}

/** The upper half of an i128 value, which carries its sign. */
function highOf(value: Val): i64 {
  return tagOf(value) == I128_SMALL_TAG ? (value as i64) >> 63 : i128High(value)
}

/** The lower half of an i128 value. */
function lowOf(value: Val): u64 {
  return tagOf(value) == I128_SMALL_TAG ? ((value as i64) >> 8) as u64 : i128Low(value)
}

function fail(error: u32): void {
  failWith(((error as u64) << 32) | ERROR_TAG)
  unreachable()
}

function demand(holds: bool, error: u32): void {
  if (!holds) fail(error)
}

// @ts-ignore: decorator
@inline
function put(at: u32, word: Val): void {
  store<u64>(words + ((at as usize) << 3), word)
}

// @ts-ignore: decorator
@inline
function vec(count: u32): Val {
  return vecFromMemory(u32Val(words as u32), u32Val(count))
}

function isAddress(value: Val): bool {
  return tagOf(value) == ADDRESS_TAG
}

/** An i128 in either of its forms; anything else ends the call. */
function demandI128(value: Val): void {
  const tag = tagOf(value)
  demand(tag == I128_SMALL_TAG || tag == I128_OBJECT_TAG, INVALID_ARGUMENT)
}

function balanceOf(token: Val, owner: Val): Val {
  put(0, owner)
  const balance = call(token, BALANCE, vec(1))
  demandI128(balance)
  return balance
}

function approve(token: Val, payer: Val, contract: Val, amount: Val, deadline: Val): void {
  put(0, payer)
  put(1, contract)
  put(2, amount)
  put(3, deadline)
  call(token, APPROVE, vec(4))
}

/** Fails unless `more` is `less` and `amount` together. */
function demandDifference(more: Val, less: Val, amount: Val): void {
  const low = lowOf(more) - lowOf(less)
  const borrow: i64 = lowOf(more) < lowOf(less) ? 1 : 0
  const high = highOf(more) - highOf(less) - borrow
  demand(low == lowOf(amount) && high == highOf(amount), MOVED_OTHERWISE)
}

/**
 * Moves `actual` from the payer to the recipient by an allowance that begins and ends in this call. Both balances must
 * change by just that, independent of the token's events.
 */
function pay(token: Val, contract: Val, payer: Val, payTo: Val, max: Val, actual: Val, deadline: Val): void {
  approve(token, payer, contract, max, deadline)
  const payerBefore = balanceOf(token, payer)
  const payToBefore = balanceOf(token, payTo)
  put(0, contract)
  put(1, payer)
  put(2, payTo)
  put(3, actual)
  call(token, symbolFromMemory(u32Val(transferFrom as u32), u32Val(13)), vec(4))
  demandDifference(payerBefore, balanceOf(token, payer), actual)
  demandDifference(balanceOf(token, payTo), payToBefore, actual)
  // The payer has signed this very call too.
  approve(token, payer, contract, ZERO, deadline)
}

function field(at: u32, from: u32, length: u32): void {
  store<u32>(fields + ((at as usize) << 3), (fieldNames as u32) + from)
  store<u32>(fields + ((at as usize) << 3) + 4, length)
}

function emitSettled(
  payer: Val,
  payTo: Val,
  token: Val,
  max: Val,
  facilitator: Val,
  settlementId: Val,
  actual: Val
): void {
  put(0, symbolFromMemory(u32Val(uptoSettled as u32), u32Val(12)))
  put(1, payer)
  put(2, payTo)
  put(3, token)
  const topics = vec(4)
  field(0, 0, 6)
  field(1, 6, 11)
  field(2, 17, 3)
  field(3, 20, 13)
  put(0, actual)
  put(1, facilitator)
  put(2, max)
  put(3, settlementId)
  emit(topics, mapFromMemory(u32Val(fields as u32), u32Val(words as u32), u32Val(4)))
}

function demandDistinct(a: Val, b: Val): void {
  demand(compareObjects(a, b) != 0, SAME_PARTY)
}

/** Marks the payer's id as spent until its deadline has passed, after which this call itself refuses. */
function spend(payer: Val, settlementId: Val, actual: Val, ledgersLeft: u32): void {
  put(0, payer)
  put(1, settlementId)
  const key = vec(2)
  demand(hasData(key, TEMPORARY) == 0, ALREADY_SETTLED)
  putData(key, actual, TEMPORARY)
  extendData(key, TEMPORARY, u32Val(ledgersLeft), u32Val(ledgersLeft))
}

/**
 * Settles one authorization with `actual`, and returns it. `valid_after` and `deadline` are ledgers, both included.
 * The payer has signed all arguments but the last; the facilitator signs all of them.
 */
export function settle(
  payer: Val,
  payTo: Val,
  token: Val,
  max: Val,
  validAfter: Val,
  deadline: Val,
  facilitator: Val,
  settlementId: Val,
  actual: Val
): Val {
  demand(isAddress(payer) && isAddress(payTo) && isAddress(token) && isAddress(facilitator), INVALID_ARGUMENT)
  demand(tagOf(validAfter) == U32_TAG && tagOf(deadline) == U32_TAG, INVALID_ARGUMENT)
  demand(tagOf(settlementId) == BYTES_TAG && bytesLength(settlementId) == u32Val(32), INVALID_ARGUMENT)
  demandI128(max)
  demandI128(actual)

  const maxHigh = highOf(max)
  const maxLow = lowOf(max)
  const actualHigh = highOf(actual)
  const actualLow = lowOf(actual)
  demand(maxHigh > 0 || (maxHigh == 0 && maxLow > 0), INVALID_MAXIMUM)
  demand(actualHigh >= 0, NEGATIVE_AMOUNT)
  demand(actualHigh < maxHigh || (actualHigh == maxHigh && actualLow <= maxLow), EXCEEDS_MAXIMUM)

  const now = u32Of(ledgerSequence())
  const last = u32Of(deadline)
  demand(u32Of(validAfter) <= now, NOT_YET_VALID)
  demand(now <= last, EXPIRED)
  demand(last - now <= LEDGERS_MAX, DEADLINE_TOO_FAR)

  const contract = currentContract()
  demandDistinct(payer, payTo)
  demandDistinct(payer, contract)
  demandDistinct(payTo, contract)
  demandDistinct(payTo, token)

  put(0, payer)
  put(1, payTo)
  put(2, token)
  put(3, max)
  put(4, validAfter)
  put(5, deadline)
  put(6, facilitator)
  put(7, settlementId)
  requireAuthForArgs(payer, vec(8))
  requireAuth(facilitator)

  spend(payer, settlementId, actual, last - now)
  if ((actualHigh | (actualLow as i64)) != 0) pay(token, contract, payer, payTo, max, actual, deadline)
  emitSettled(payer, payTo, token, max, facilitator, settlementId, actual)
  return actual
}
