// Code that the drafts' settlement contracts share: reading values, calling a token and taking an amount from a payer.
// The build prepends it to each of them (stateless.as, stateful.as, seven.as); it has not been audited.
/** A value as host and contract exchange it: 64 bits, the low byte a tag, the rest the value or the handle of an object. */
type Val = u64

const ERROR_TAG: u64 = 3
const FALSE: Val = 0
const TRUE: Val = 1
const VOID: Val = 2
const U32_TAG: u64 = 4
const U64_SMALL_TAG: u64 = 6
const U64_OBJECT_TAG: u64 = 64
const I128_SMALL_TAG: u64 = 11
const I128_OBJECT_TAG: u64 = 69
const BYTES_TAG: u64 = 72
const ADDRESS_TAG: u64 = 77
/** The i128 zero in its small form. */
const ZERO: Val = I128_SMALL_TAG
/** The symbols of up to nine characters are numbers too: six bits a character. */
const APPROVE: Val = 0x26d75df4eea0e
const NONCE: Val = 0x19d33a2a0e
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
@external("x", "4")
declare function ledgerTimestamp(): Val
// @ts-ignore: decorator
@external("x", "5")
declare function failWith(error: Val): Val
// @ts-ignore: decorator
@external("x", "7")
declare function currentContract(): Val
// @ts-ignore: decorator
@external("i", "0")
declare function u64Of(object: Val): u64
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
 * Opens the allowance and moves `actual` by it; zero moves nothing. Both balances must change by exactly that amount,
 * independent of the token's events. The caller ends the rest of the allowance.
 */
function pay(token: Val, contract: Val, payer: Val, payTo: Val, max: Val, actual: Val, deadline: Val): void {
  approve(token, payer, contract, max, deadline)
  if ((highOf(actual) | (lowOf(actual) as i64)) == 0) return
  const payerBefore = balanceOf(token, payer)
  const payToBefore = balanceOf(token, payTo)
  put(0, contract)
  put(1, payer)
  put(2, payTo)
  put(3, actual)
  call(token, symbolFromMemory(u32Val(transferFrom as u32), u32Val(13)), vec(4))
  demandDifference(payerBefore, balanceOf(token, payer), actual)
  demandDifference(balanceOf(token, payTo), payToBefore, actual)
}

function demandDistinct(a: Val, b: Val): void {
  demand(compareObjects(a, b) != 0, SAME_PARTY)
}

function demandParties(payer: Val, payTo: Val, token: Val, contract: Val): void {
  demandDistinct(payer, payTo)
  demandDistinct(payer, contract)
  demandDistinct(payTo, contract)
  demandDistinct(payTo, token)
}

/** The maximum is above zero, and the amount from zero to the maximum. */
function demandAmounts(max: Val, actual: Val): void {
  demandI128(max)
  demandI128(actual)
  const maxHigh = highOf(max)
  const maxLow = lowOf(max)
  const actualHigh = highOf(actual)
  demand(maxHigh > 0 || (maxHigh == 0 && maxLow > 0), INVALID_MAXIMUM)
  demand(actualHigh >= 0, NEGATIVE_AMOUNT)
  demand(actualHigh < maxHigh || (actualHigh == maxHigh && lowOf(actual) <= maxLow), EXCEEDS_MAXIMUM)
}

/** The last ledger has not passed and is not too far; how many ledgers are left. */
function demandLedger(deadline: Val): u32 {
  demand(tagOf(deadline) == U32_TAG, INVALID_ARGUMENT)
  const now = u32Of(ledgerSequence())
  const last = u32Of(deadline)
  demand(now <= last, EXPIRED)
  demand(last - now <= LEDGERS_MAX, DEADLINE_TOO_FAR)
  return last - now
}

function demandId(id: Val): void {
  demand(tagOf(id) == BYTES_TAG && bytesLength(id) == u32Val(32), INVALID_ARGUMENT)
}

/** Seconds of a u64 in either of its forms; anything else ends the call. */
function secondsOf(value: Val): u64 {
  if (tagOf(value) == U64_SMALL_TAG) return value >> 8
  demand(tagOf(value) == U64_OBJECT_TAG, INVALID_ARGUMENT)
  return u64Of(value)
}

/** The key of a payer's nonce, as the drafts keep it: `Nonce`, payer, nonce. */
function nonceKey(payer: Val, nonce: Val): Val {
  put(0, NONCE)
  put(1, payer)
  put(2, nonce)
  return vec(3)
}

/** Marks the payer's nonce as spent until the last ledger has passed, after which the call itself refuses. */
function spend(payer: Val, nonce: Val, mark: Val, ledgersLeft: u32): void {
  const key = nonceKey(payer, nonce)
  demand(hasData(key, TEMPORARY) == 0, ALREADY_SETTLED)
  putData(key, mark, TEMPORARY)
  extendData(key, TEMPORARY, u32Val(ledgersLeft), u32Val(ledgersLeft))
}
