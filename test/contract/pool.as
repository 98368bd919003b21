// A pool of two tokens for tests: its balances are its reserves, and a swap leaves their product no smaller, with a fee
// of three in a thousand. Amounts are small numbers. AssemblyScript, never put on a real ledger.
type Val = u64
const I128: u64 = 11
const TRUE: Val = 1
const VOID: Val = 2
const INSTANCE: u64 = 2
const TOKEN_A: Val = 4
const TOKEN_B: Val = ((1 as u64) << 32) | 4
const TOO_LITTLE: Val = ((1 as u64) << 32) | 3
const EMPTY: Val = ((2 as u64) << 32) | 3

// @ts-ignore: decorator
@external("x", "5")
declare function fail(error: Val): Val
// @ts-ignore: decorator
@external("x", "7")
declare function self(): Val
// @ts-ignore: decorator
@external("v", "g")
declare function vecFromMemory(from: Val, count: Val): Val
// @ts-ignore: decorator
@external("b", "j")
declare function symbolFromMemory(from: Val, length: Val): Val
// @ts-ignore: decorator
@external("l", "_")
declare function putData(key: Val, value: Val, storage: u64): Val
// @ts-ignore: decorator
@external("l", "1")
declare function getData(key: Val, storage: u64): Val
// @ts-ignore: decorator
@external("a", "0")
declare function requireAuth(address: Val): Val
// @ts-ignore: decorator
@external("d", "_")
declare function call(contract: Val, fn: Val, args: Val): Val

const words: usize = memory.data(64, 8)
const transferText: usize = memory.data<u8>([0x74, 0x72, 0x61, 0x6e, 0x73, 0x66, 0x65, 0x72])
const balanceText: usize = memory.data<u8>([0x62, 0x61, 0x6c, 0x61, 0x6e, 0x63, 0x65])

function put(at: u32, word: Val): void {
  store<u64>(words + ((at as usize) << 3), word)
}

function u32Val(value: u32): Val {
  return ((value as u64) << 32) | 4
}

function vec(count: u32): Val {
  return vecFromMemory(u32Val(words as u32), u32Val(count))
}

function amountOf(value: Val): i64 {
  return (value as i64) >> 8
}

function i128(amount: i64): Val {
  return ((amount as u64) << 8) | I128
}

function token(which: Val): Val {
  return getData(which, INSTANCE)
}

function reserve(which: Val): i64 {
  put(0, self())
  return amountOf(call(token(which), symbolFromMemory(u32Val(balanceText as u32), u32Val(7)), vec(1)))
}

function transfer(which: Val, from: Val, to: Val, amount: i64): void {
  put(0, from)
  put(1, to)
  put(2, i128(amount))
  call(token(which), symbolFromMemory(u32Val(transferText as u32), u32Val(8)), vec(3))
}

export function __constructor(a: Val, b: Val): Val {
  putData(TOKEN_A, a, INSTANCE)
  putData(TOKEN_B, b, INSTANCE)
  return VOID
}

export function deposit(from: Val, a: Val, b: Val): Val {
  requireAuth(from)
  transfer(TOKEN_A, from, self(), amountOf(a))
  transfer(TOKEN_B, from, self(), amountOf(b))
  return VOID
}

/** What `from` gets for `amount` of one token, not less than `least`. */
export function swap(from: Val, sellsA: Val, amount: Val, least: Val): Val {
  requireAuth(from)
  const sold = sellsA == TRUE ? TOKEN_A : TOKEN_B
  const bought = sellsA == TRUE ? TOKEN_B : TOKEN_A
  const paid = amountOf(amount)
  const sent = paid * 997
  const before = reserve(sold)
  const out = (reserve(bought) * sent) / (before * 1000 + sent)
  if (before == 0 || paid <= 0) fail(EMPTY)
  if (out < amountOf(least)) fail(TOO_LITTLE)
  transfer(sold, from, self(), paid)
  transfer(bought, self(), from, out)
  return i128(out)
}
