// A contract for tests that asks the host for as much as it can, in a different way for each number. AssemblyScript,
// never put on a real ledger.
type Val = u64
// @ts-ignore: decorator
@external("x", "1")
declare function emit(topics: Val, data: Val): Val
// @ts-ignore: decorator
@external("x", "0")
declare function cmp(a: Val, b: Val): i64
// @ts-ignore: decorator
@external("x", "7")
declare function self(): Val
// @ts-ignore: decorator
@external("v", "_")
declare function vecNew(): Val
// @ts-ignore: decorator
@external("v", "6")
declare function push(v: Val, x: Val): Val
// @ts-ignore: decorator
@external("v", "b")
declare function append(a: Val, b: Val): Val
// @ts-ignore: decorator
@external("v", "d")
declare function firstIndex(a: Val, b: Val): Val
// @ts-ignore: decorator
@external("m", "_")
declare function mapNew(): Val
// @ts-ignore: decorator
@external("m", "0")
declare function mapPut(m: Val, k: Val, v: Val): Val
// @ts-ignore: decorator
@external("b", "_")
declare function ser(v: Val): Val
// @ts-ignore: decorator
@external("b", "0")
declare function deser(v: Val): Val
// @ts-ignore: decorator
@external("b", "e")
declare function bappend(a: Val, b: Val): Val
// @ts-ignore: decorator
@external("b", "3")
declare function bytesFrom(a: Val, b: Val): Val
// @ts-ignore: decorator
@external("b", "j")
declare function symFrom(a: Val, b: Val): Val
// @ts-ignore: decorator
@external("l", "_")
declare function put(k: Val, v: Val, t: u64): Val
// @ts-ignore: decorator
@external("l", "7")
declare function extend(k: Val, t: u64, a: Val, b: Val): Val
// @ts-ignore: decorator
@external("l", "3")
declare function create(d: Val, h: Val, s: Val): Val
// @ts-ignore: decorator
@external("l", "6")
declare function upgrade(h: Val): Val
// @ts-ignore: decorator
@external("d", "_")
declare function call(c: Val, f: Val, a: Val): Val
// @ts-ignore: decorator
@external("d", "0")
declare function tryCall(c: Val, f: Val, a: Val): Val
// @ts-ignore: decorator
@external("a", "_")
declare function authArgs(c: Val, a: Val): Val
// @ts-ignore: decorator
@external("a", "3")
declare function authorize(a: Val): Val
// @ts-ignore: decorator
@external("p", "0")
declare function prng(n: Val): Val
// @ts-ignore: decorator
@external("p", "2")
declare function shuffle(n: Val): Val
// @ts-ignore: decorator
@external("c", "_")
declare function sha(n: Val): Val

const runText: usize = memory.data<u8>([0x72, 0x75, 0x6e])

function u32Val(value: u32): Val {
  return ((value as u64) << 32) | 4
}

function run_(): Val {
  return symFrom(u32Val(runText as u32), u32Val(3))
}

/** A tree with identical branches: small in memory, and twice as large to write with each level. */
function tree(levels: i32): Val {
  let value: Val = 2
  for (let i = 0; i < levels; i++) value = push(push(vecNew(), value), value)
  return value
}

function nested(levels: i32): Val {
  let value: Val = 2
  for (let i = 0; i < levels; i++) value = push(vecNew(), value)
  return value
}

function doubled(times: i32): Val {
  let value = push(vecNew(), u32Val(1))
  for (let i = 0; i < times; i++) value = append(value, value)
  return value
}

function doubledBytes(times: i32): Val {
  let value = bytesFrom(u32Val(0), u32Val(1024))
  for (let i = 0; i < times; i++) value = bappend(value, value)
  return value
}

export function values(kind: Val): Val {
  switch ((kind >> 32) as u32) {
    case 0:
      return doubled(40)
    case 1:
      return doubledBytes(40)
    case 2:
      return ser(tree(60))
    case 3:
      return nested(400)
    case 4:
      return ser(nested(100000))
    case 5:
      return cmp(tree(40), tree(40)) == 0 ? 1 : 0
    case 6:
      return firstIndex(push(vecNew(), tree(40)), tree(40))
    case 7: {
      let map = mapNew()
      for (let i = 0; i < 1000000; i++) map = mapPut(map, u32Val(i * 7919), 2)
      return map
    }
    case 8: {
      let map = mapNew()
      for (let i = 0; i < 50; i++) map = mapPut(mapPut(mapNew(), u32Val(0), map), u32Val(1), map)
      return map
    }
    case 9:
      return shuffle(doubled(20))
    case 10:
      return prng(u32Val(0xffffffff))
    case 11:
      return deser(doubledBytes(12))
    case 12:
      for (let i = 0; i < 100000; i++) sha(doubledBytes(10))
      return 2
    case 13:
      return 0xffffffffffffffff
    default:
      return tree(62)
  }
}

export function run(kind: Val): Val {
  switch ((kind >> 32) as u32) {
    case 0:
      return put(tree(25), 2, 1)
    case 1:
      return put(2, tree(25), 2)
    case 2:
      for (let i = 0; i < 3000; i++) put(2, doubled(12), 2)
      return 2
    case 3:
      put(2, 2, 0)
      return extend(2, 0, u32Val(0xffffffff), u32Val(0xffffffff))
    case 4:
      for (let i = 0; i < 1000000; i++) emit(push(vecNew(), u32Val(i)), 2)
      return 2
    case 5:
      return emit(tree(30), 2)
    case 6:
      return call(self(), run_(), push(vecNew(), kind))
    case 7:
      for (let i = 0; i < 100000; i++) tryCall(self(), run_(), push(vecNew(), kind))
      return 2
    case 8:
      return authArgs(self(), tree(40))
    case 9:
      return authorize(nested(5000))
    case 10:
      return authorize(tree(20))
    case 11:
      return upgrade(bytesFrom(u32Val(0), u32Val(32)))
    case 12:
      return create(self(), bytesFrom(u32Val(0), u32Val(32)), bytesFrom(u32Val(0), u32Val(32)))
    default:
      return 2
  }
}
