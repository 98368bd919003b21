// A factory of pools for tests: it creates the pool of two tokens from code on the ledger, once per pair, and stores
// the pool's address. AssemblyScript, never put on a real ledger.
type Val = u64
const PERSISTENT: u64 = 1

// @ts-ignore: decorator
@external("x", "1")
declare function emit(topics: Val, data: Val): Val
// @ts-ignore: decorator
@external("x", "7")
declare function self(): Val
// @ts-ignore: decorator
@external("v", "g")
declare function vecFromMemory(from: Val, count: Val): Val
// @ts-ignore: decorator
@external("b", "_")
declare function serialized(value: Val): Val
// @ts-ignore: decorator
@external("b", "j")
declare function symbolFromMemory(from: Val, length: Val): Val
// @ts-ignore: decorator
@external("c", "_")
declare function sha256(bytes: Val): Val
// @ts-ignore: decorator
@external("l", "_")
declare function putData(key: Val, value: Val, storage: u64): Val
// @ts-ignore: decorator
@external("l", "1")
declare function getData(key: Val, storage: u64): Val
// @ts-ignore: decorator
@external("l", "e")
declare function createContract(deployer: Val, wasmHash: Val, salt: Val, args: Val): Val

const words: usize = memory.data(64, 8)
const createdText: usize = memory.data<u8>([0x63, 0x72, 0x65, 0x61, 0x74, 0x65, 0x64])

function put(at: u32, word: Val): void {
  store<u64>(words + ((at as usize) << 3), word)
}

function u32Val(value: u32): Val {
  return ((value as u64) << 32) | 4
}

function vec(count: u32): Val {
  return vecFromMemory(u32Val(words as u32), u32Val(count))
}

function pair(a: Val, b: Val): Val {
  put(0, a)
  put(1, b)
  return vec(2)
}

/** The pool's address follows from the pair, so a second pool of a pair would have the same address and fails. */
export function create(wasmHash: Val, a: Val, b: Val): Val {
  const salt = sha256(serialized(pair(a, b)))
  const pool = createContract(self(), wasmHash, salt, pair(a, b))
  putData(salt, pool, PERSISTENT)
  put(0, symbolFromMemory(u32Val(createdText as u32), u32Val(7)))
  put(1, a)
  put(2, b)
  emit(vec(3), pool)
  return pool
}

export function pool(a: Val, b: Val): Val {
  return getData(sha256(serialized(pair(a, b))), PERSISTENT)
}
