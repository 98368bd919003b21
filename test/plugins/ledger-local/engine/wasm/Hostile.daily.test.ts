// Modules that try to hang the process, to exhaust it, or to access memory outside their own. Each ends with the
// network's own error within seconds.
import { p256 } from "@noble/curves/nist.js"
import process from "node:process"
import { describe, expect, it } from "vitest"
import { crypto, errorOf, keyOf, succeeded } from "../World.ts"
import {
  call,
  contract,
  execute,
  hostImport,
  I32,
  I64,
  leb,
  section,
  signed,
  sized,
  VOID_BODY,
  world
} from "./assemble.ts"

const refused = (code: Uint8Array): string => errorOf(execute(world(), { type: 2, wasm: code }))

/** The error of a call, which must use at most a few seconds of CPU time, however busy the machine is. */
const stopped = (code: Uint8Array): string => {
  const started = process.cpuUsage()
  const error = errorOf(call(code))
  expect(process.cpuUsage(started).user / 1_000).toBeLessThan(15_000)
  return error
}

const forever = (...body: ReadonlyArray<number>): Array<number> => [0x03, 0x40, ...body, 0x0c, 0, 0x0b, ...VOID_BODY]
const i32 = (value: number): Array<number> => [0x41, ...signed(BigInt(value))]
const word = (value: bigint): Array<number> => [0x42, ...signed(value)]
const u32 = (value: number): Array<number> => word(BigInt.asIntN(64, (BigInt(value) << 32n) | 4n))
const run = (index: number): Array<number> => [0x10, index]
const DROP = 0x1a
/** Almost half of a transaction's memory, because creating a contract instantiates it twice. */
const LARGE_PAGES = 300
const LARGE_MEMORY = LARGE_PAGES * 65_536
const largeMemory = [0, ...leb(LARGE_PAGES)]
const dataAt = (offset: number, bytes: ReadonlyArray<number>): Array<number> =>
  section(11, [0, ...i32(offset), 0x0b, ...sized(bytes)])

describe("a module that violates the module rules", () => {
  it("a module cannot access its fuel globals", () => {
    expect(refused(contract({ body: forever(...i32(1_000_000), 0x24, 0) }))).toMatch(/unknown global/)
    expect(refused(contract({ body: [0x23, 0, DROP, ...VOID_BODY] }))).toMatch(/unknown global/)
    const own = section(6, [0x7f, 1, ...i32(0), 0x0b])
    const counting = contract({ body: [0x23, 0, 0x24, 0, ...VOID_BODY], extra: own })
    expect(succeeded(call(counting)).returnValue).toEqual({ type: 1 })
    expect(refused(contract({ body: [...i32(9), 0x24, 1, ...VOID_BODY], extra: own }))).toMatch(/unknown global/)
  })

  it("a module has one bounded memory and one bounded table", () => {
    const two = contract({ body: VOID_BODY })
    const at = two.findIndex((byte, i) => byte === 5 && two[i + 1] === 3 && two[i + 2] === 1)
    const doubled = Uint8Array.from([...two.slice(0, at), 5, 5, 2, 0, 1, 0, 1, ...two.slice(at + 5)])
    expect(refused(doubled)).toMatch(/more than one memory/)
    expect(refused(contract({ body: VOID_BODY, memory: [0, 0x81, 5] }))).toMatch(/memory too large/)
    expect(refused(contract({ body: VOID_BODY, memory: [4, 1] }))).toMatch(/64-bit/)
    expect(refused(contract({ body: VOID_BODY, memory: [3, 1, 1] }))).toMatch(/shared/)
    // The table section precedes the memory section, so it is spliced in.
    const withTable = (...tables: ReadonlyArray<ReadonlyArray<number>>): Uint8Array =>
      Uint8Array.from([...two.slice(0, at), ...section(4, ...tables), ...two.slice(at)])
    expect(refused(withTable([0x70, 0, 1], [0x70, 0, 1]))).toMatch(/more than one table/)
    expect(refused(withTable([0x70, 0, 0xe9, 7]))).toMatch(/table too large/)
    expect(succeeded(call(withTable([0x70, 0, 0xe8, 7]))).returnValue).toEqual({ type: 1 })
  })

  it("refuses segments outside the memory at upload", () => {
    expect(refused(contract({ body: VOID_BODY, after: dataAt(65_530, [1, 2, 3, 4, 5, 6, 7, 8]) }))).toMatch(
      /^Error\(WasmVm, InvalidAction\)/
    )
  })
})

describe("a module with disallowed instructions", () => {
  const bodies: ReadonlyArray<readonly [string, ReadonlyArray<number>]> = [
    ["return_call", [0x12, 0]],
    ["return_call_indirect", [0x13, 0, 0]],
    ["call_ref", [0x14, 0]],
    ["return_call_ref", [0x15, 0]],
    ["try", [0x06, 0x40, 0x0b]],
    ["throw", [0x08, 0]],
    ["rethrow", [0x09, 0]],
    ["throw_ref", [0x0a]],
    ["delegate", [0x18, 0]],
    ["try_table", [0x1f, 0x40, 0, 0x0b]],
    ["select with a type", [0x1c, 1, 0x7e]],
    ["table.get", [0x25, 0]],
    ["table.set", [0x26, 0]],
    ["ref.null", [0xd0, 0x70]],
    ["ref.is_null", [0xd1]],
    ["ref.func", [0xd2, 0]],
    ["br_on_null", [0xd5, 0]],
    ["table.grow", [0xfc, 15, 0]],
    ["i32.trunc_sat", [0xfc, 0]],
    ["garbage collection", [0xfb, 0]],
    ["vectors", [0xfd, 0]],
    ["atomics", [0xfe, 0]],
    ["a memory with a number", [0x41, 0, 0x28, 0x42, 1, 0, 0x1a]],
    ["a block of two results", [0x02, 0, 0x0b, 0x1a]],
    ["a second table", [0x41, 0, 0x11, 0, 1]]
  ]

  it.each(bodies)("such as %s is refused at upload", (_, body) => {
    expect(refused(contract({ body: [...body, ...VOID_BODY] }))).toMatch(/^Error\(WasmVm, InvalidAction\)/)
  })

  it("refuses each opcode byte that is not on the list", () => {
    const first = (op: number): Uint8Array => contract({ body: [op, 0x40, 0x0b, ...VOID_BODY] })
    const error = (op: number): string => {
      const result = execute(world(), { type: 2, wasm: first(op) })
      return result.ok ? "" : result.error.message
    }
    const passed = Array.from({ length: 256 }, (_, op) => op).filter((op) => !/is not allowed/.test(error(op)))
    const listed = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
    expect(passed).toEqual([
      ...listed(0x00, 0x05),
      ...listed(0x0b, 0x11),
      ...[0x1a, 0x1b],
      ...listed(0x20, 0x24),
      ...[0x28, 0x29],
      ...listed(0x2c, 0x37),
      ...listed(0x3a, 0x42),
      ...listed(0x45, 0x5a),
      ...listed(0x67, 0x8a),
      ...[0xa7, 0xac, 0xad],
      ...listed(0xc0, 0xc4)
    ])
  })

  it("refuses a disallowed instruction whose operand resembles a loop", () => {
    // `return_call 3` ends with a byte that would be read as a loop's, and the loop after it would pay nothing.
    const hidden = [0x12, 0x03, 0x0b, 0x03, 0x40, 0x0c, 0, 0x0b]
    expect(refused(contract({ body: [0x02, 0x40, ...hidden, ...VOID_BODY] }))).toMatch(/0x12 is not allowed/)
  })
})

describe("a module whose imports are not the network's", () => {
  const of = (module: string, name: string, type: 1 | 2 | 3 | 4 | 5 | 6): string =>
    refused(contract({ body: VOID_BODY, imports: [hostImport(module, name, type)] }))

  it("refuses an import that does not exist", () => {
    expect(of("p", "9", 1)).toMatch(/^Error\(WasmVm, InvalidAction\) .*unknown function/)
    expect(of("__proto__", "x", 1)).toMatch(/unknown function/)
    expect(of("x", "constructor", 1)).toMatch(/unknown function/)
  })

  it("refuses an import with other parameters", () => {
    expect(of("x", "3", 2)).toMatch(/^Error\(WasmVm, InvalidAction\) .*another signature/)
    expect(of("x", "0", 1)).toMatch(/another signature/)
  })

  it("refuses an import of a later protocol", () => {
    expect(of("m", "b", 4)).toMatch(/^Error\(WasmVm, InvalidAction\) .*not yet supported/)
    const old = contract({ body: VOID_BODY, imports: [hostImport("b", "n", 3)], protocol: 22 })
    expect(refused(old)).toMatch(/not yet supported/)
  })
})

describe("a module that moves bytes for ever", () => {
  const lengthy = [...i32(0), ...i32(0), ...i32(LARGE_MEMORY)]

  it("pays for each byte of memory.fill and memory.copy", () => {
    expect(stopped(contract({ body: forever(...lengthy, 0xfc, 11, 0), memory: largeMemory }))).toMatch(
      /^Error\(Budget, ExceededLimit\)/
    )
    expect(stopped(contract({ body: forever(...lengthy, 0xfc, 10, 0, 0), memory: largeMemory }))).toMatch(
      /^Error\(Budget, ExceededLimit\)/
    )
    const once = contract({
      body: [...lengthy, 0xfc, 11, 0, ...VOID_BODY],
      memory: largeMemory,
      locals: [2, 1, I64, 1, I32]
    })
    expect(succeeded(call(once)).returnValue).toEqual({ type: 1 })
  })

  it("charges memory.grow, also by zero pages", () => {
    expect(stopped(contract({ body: forever(...i32(0), 0x40, 0, DROP) }))).toMatch(/^Error\(Budget, ExceededLimit\)/)
    expect(stopped(contract({ body: forever(...i32(1), 0x40, 0, DROP) }))).toMatch(/^Error\(Budget, ExceededLimit\)/)
  })
})

const times = (count: number, ...bytes: ReadonlyArray<number>): Array<number> =>
  Array.from({ length: count }, () => bytes).flat()
const branch = [...i32(0), 0x04, 0x40, 0x0b]

describe("a module that keeps the compiler busy", () => {
  const tooMuch = /^Error\(WasmVm, InvalidAction\) .*asks too much of the compiler/

  it("refuses branches that meet over tens of thousands of locals", () => {
    expect(
      refused(contract({ locals: [1, ...leb(49_000), I64], body: [...times(15_000, ...branch), ...VOID_BODY] }))
    ).toMatch(tooMuch)
    const loops = [...times(15_000, 0x03, 0x40, 0x0b), ...VOID_BODY]
    expect(refused(contract({ locals: [1, ...leb(49_000), I64], body: loops }))).toMatch(tooMuch)
    const choices = [0x02, 0x40, ...i32(0), 0x0e, ...leb(9_000), ...times(9_001, 0), 0x0b, ...VOID_BODY]
    expect(refused(contract({ locals: [1, ...leb(49_000), I64], body: choices }))).toMatch(tooMuch)
  })

  it("refuses branches that meet over tens of thousands of stack values", () => {
    const deep = [...times(15_000, ...word(1n)), ...times(15_000, ...branch), ...times(15_000, DROP), ...VOID_BODY]
    expect(refused(contract({ body: deep }))).toMatch(tooMuch)
  })

  it("accepts many branches or many locals separately", () => {
    expect(succeeded(call(contract({ body: [...times(15_000, ...branch), ...VOID_BODY] }))).returnValue).toEqual({
      type: 1
    })
    const wide = contract({ locals: [1, ...leb(49_000), I64], body: VOID_BODY })
    expect(succeeded(call(wide)).returnValue).toEqual({ type: 1 })
    // Unreachable code after a jump leaves the following code's stack empty.
    const dead = times(3_000, 0x02, 0x40, 0x0c, 0, ...word(1n), DROP, 0x0b)
    const valued = times(3_000, 0x02, I64, ...word(1n), 0x0b, DROP)
    expect(succeeded(call(contract({ body: [...dead, ...valued, ...VOID_BODY] }))).returnValue).toEqual({ type: 1 })
  })

  it("accepts blocks nested to the code's length", () => {
    for (const kind of [0x02, 0x03]) {
      const nested = [...times(15_000, kind, 0x40), ...times(15_000, 0x0b), ...VOID_BODY]
      expect(succeeded(call(contract({ body: nested }))).returnValue).toEqual({ type: 1 })
    }
  })
})

describe("a module that takes memory", () => {
  it("memory is limited to the network's per transaction, host objects included", () => {
    const imports = [hostImport("b", "3", 2)]
    const making = (count: number) =>
      call(
        contract({
          imports,
          body: [...times(count, ...u32(0), ...u32(65_536), ...run(0), DROP), ...VOID_BODY],
          memory: largeMemory
        })
      )
    expect(succeeded(making(330)).returnValue).toEqual({ type: 1 })
    expect(errorOf(making(345))).toMatch(/^Error\(Budget, ExceededLimit\)/)
  })

  it("charges the network's price per memory page, initial and grown", () => {
    const used = (result: ReturnType<typeof call>): number => succeeded(result).instructions
    const [small, large] = [1, 101].map((pages) =>
      used(call(contract({ body: VOID_BODY, memory: [0, ...leb(pages)] })))
    )
    expect(large! - small!).toBe(100 * 8_192)
    const growing = (pages: number) =>
      used(call(contract({ body: [...i32(pages), 0x40, 0, DROP, ...VOID_BODY], locals: [2, 1, I64, 1, I32] })))
    expect(growing(60) - growing(10)).toBe(50 * 8_192)
  })
})

/** A loop over one host function, with arguments created once and kept in locals. */
const loopOver = (
  module: string,
  name: string,
  type: 1 | 2 | 3 | 4 | 5 | 6,
  args: ReadonlyArray<ReadonlyArray<number>>,
  data: ReadonlyArray<number> = []
): Uint8Array => {
  // b.3 makes bytes of memory, v._ an empty vector, b.j a symbol, x.7 the contract's own address.
  const imports = [
    hostImport("b", "3", 2),
    hostImport("v", "_", 1),
    hostImport("b", "j", 2),
    hostImport("x", "7", 1),
    hostImport(module, name, type)
  ]
  const keep = args.flatMap((arg, i) => [...arg, 0x21, i])
  const use = args.flatMap((_, i) => [0x20, i])
  const locals = args.length === 0 ? [0] : [1, args.length, I64]
  return contract({
    locals,
    imports,
    body: [...keep, ...forever(...use, ...run(4), DROP)],
    after: data.length === 0 ? [] : dataAt(0, data)
  })
}
const bytesAt = (from: number, length: number): Array<number> => [...u32(from), ...u32(length), ...run(0)]
const emptyVec = run(1)
const symbolAt = (from: number, length: number): Array<number> => [...u32(from), ...u32(length), ...run(2)]
const ownAddress = run(3)

const message = [1, 2, 3]
const signer = keyOf(9)
const ed25519 = [...signer.id.ed25519, ...crypto.ed25519Sign(signer.seed, Uint8Array.from(message)), ...message]
const p256Seed = new Uint8Array(32).fill(7)
const digest = new Uint8Array(32).fill(3)
const secp256r1 = [
  ...p256.getPublicKey(p256Seed, false),
  ...digest,
  ...p256.sign(digest, p256Seed, { prehash: false, lowS: true })
]
const self = [...new TextEncoder().encode("run")]

describe("a module that calls the host for ever", () => {
  it.each<readonly [string, Uint8Array]>([
    ["asks for the ledger", loopOver("x", "3", 1, [])],
    ["makes vectors", loopOver("v", "_", 1, [])],
    ["compares", loopOver("x", "0", 2, [emptyVec, emptyVec])],
    ["copies memory", loopOver("b", "3", 2, [u32(0), u32(65_536)])],
    ["serializes", loopOver("b", "_", 3, [bytesAt(0, 65_536)])],
    ["hashes little", loopOver("c", "_", 3, [bytesAt(0, 32)])],
    ["hashes much", loopOver("c", "_", 3, [bytesAt(0, 65_536)])],
    ["checks ed25519 signatures", loopOver("c", "0", 4, [bytesAt(0, 32), bytesAt(96, 3), bytesAt(32, 64)], ed25519)],
    [
      "checks secp256r1 signatures",
      loopOver("c", "3", 4, [bytesAt(0, 65), bytesAt(65, 32), bytesAt(97, 64)], secp256r1)
    ],
    ["checks for an entry", loopOver("l", "0", 2, [u32(1), word(1n)])],
    ["writes an entry", loopOver("l", "_", 4, [u32(1), u32(2), word(0n)])],
    ["writes an instance entry", loopOver("l", "_", 4, [u32(1), u32(2), word(2n)])],
    ["emits events", loopOver("x", "1", 2, [emptyVec, u32(1)])],
    ["tries calls that fail", loopOver("d", "0", 4, [ownAddress, symbolAt(0, 3), emptyVec], self)],
    ["writes addresses out", loopOver("a", "2", 3, [ownAddress])],
    ["uploads code that is none", loopOver("l", "5", 3, [bytesAt(0, 65_536)])]
  ])("and %s is stopped", (_, code) => {
    expect(stopped(code)).toMatch(/^Error\((Budget, ExceededLimit|WasmVm, InvalidAction)\)/)
  })
})
