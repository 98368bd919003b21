// A token for tests that can be set to lie. It keeps balances as small numbers, asks its holders for nothing but the
// authorization of `approve`, and moves or claims to move as its mode says. AssemblyScript, never put on a real ledger.
type Val = u64
const I128: u64 = 11
const VOID: Val = 2
const PERSISTENT: u64 = 1
const INSTANCE: u64 = 2
const MODE: Val = (((((12 + 12) as u64) << 8) | 14) as u64)

// @ts-ignore: decorator
@external("x", "1")
declare function emit(topics: Val, data: Val): Val
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
@external("l", "1")
declare function getData(key: Val, storage: u64): Val
// @ts-ignore: decorator
@external("b", "j")
declare function symbolFromMemory(from: Val, length: Val): Val
// @ts-ignore: decorator
@external("a", "0")
declare function requireAuth(address: Val): Val
// @ts-ignore: decorator
@external("d", "_")
declare function call(contract: Val, fn: Val, args: Val): Val

const words: usize = memory.data(96, 8)
const transferText: usize = memory.data<u8>([0x74, 0x72, 0x61, 0x6e, 0x73, 0x66, 0x65, 0x72])
const approveText: usize = memory.data<u8>([0x61, 0x70, 0x70, 0x72, 0x6f, 0x76, 0x65])
const settleText: usize = memory.data<u8>([0x73, 0x65, 0x74, 0x74, 0x6c, 0x65])

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

function held(owner: Val): i64 {
  return hasData(owner, PERSISTENT) == 1 ? amountOf(getData(owner, PERSISTENT)) : 0
}

function hold(owner: Val, amount: i64): void {
  putData(owner, i128(amount), PERSISTENT)
}

function modeOf(): u32 {
  return hasData(MODE, INSTANCE) == 1 ? ((getData(MODE, INSTANCE) >> 32) as u32) : 0
}

function move(from: Val, to: Val, amount: i64): void {
  if (held(from) < amount) unreachable()
  hold(from, held(from) - amount)
  hold(to, held(to) + amount)
}

function announce(from: Val, to: Val, amount: i64): void {
  put(0, symbolFromMemory(u32Val(transferText as u32), u32Val(8)))
  put(1, from)
  put(2, to)
  emit(vec(3), i128(amount))
}

/** 0 honest, 1 half, 2 twice, 3 elsewhere (to the spender), 4 nothing, 5 one atom more for the spender, 6 calls back. */
export function mode(value: Val): Val {
  putData(MODE, value, INSTANCE)
  return VOID
}

export function mint(to: Val, amount: Val): Val {
  hold(to, held(to) + amountOf(amount))
  return VOID
}

export function balance(owner: Val): Val {
  return i128(held(owner))
}

export function approve(from: Val, spender: Val, amount: Val, liveUntil: Val): Val {
  requireAuth(from)
  put(0, amount)
  put(1, liveUntil)
  const data = vec(2)
  put(0, symbolFromMemory(u32Val(approveText as u32), u32Val(7)))
  put(1, from)
  put(2, spender)
  emit(vec(3), data)
  return VOID
}

export function transfer_from(spender: Val, from: Val, to: Val, amount: Val): Val {
  requireAuth(spender)
  const asked = amountOf(amount)
  const how = modeOf()
  if (how == 0) move(from, to, asked)
  if (how == 1) move(from, to, asked / 2)
  if (how == 2) {
    move(from, to, asked)
    move(from, to, asked)
  }
  if (how == 3) move(from, spender, asked)
  if (how == 5) {
    move(from, to, asked)
    move(from, spender, 1)
  }
  if (how == 6) {
    put(0, from)
    call(spender, symbolFromMemory(u32Val(settleText as u32), u32Val(6)), vec(1))
  }
  announce(from, to, asked)
  return VOID
}

/**
 * A holder moves what he holds, as with any token. 11 half arrives, 12 twice as much moves, 13 nothing, 14 the holder
 * pays an atom more, 15 calls the recipient back, 16 the holder loses nothing and the recipient gets all.
 */
export function transfer(from: Val, to: Val, amount: Val): Val {
  requireAuth(from)
  const asked = amountOf(amount)
  const how = modeOf()
  if (how < 11) move(from, to, asked)
  if (how == 11) {
    hold(from, held(from) - asked)
    hold(to, held(to) + asked / 2)
  }
  if (how == 12) {
    move(from, to, asked)
    move(from, to, asked)
  }
  if (how == 14) {
    hold(from, held(from) - asked - 1)
    hold(to, held(to) + asked)
  }
  if (how == 15) {
    put(0, from)
    call(to, symbolFromMemory(u32Val(settleText as u32), u32Val(6)), vec(1))
  }
  if (how == 16) hold(to, held(to) + asked)
  announce(from, to, asked)
  return VOID
}
