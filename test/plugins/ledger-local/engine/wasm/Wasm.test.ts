import process from "node:process"
import { describe, expect, it } from "vitest"
import { contractCodeKey } from "../../../../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import {
  compareScVal,
  i128,
  i64,
  str,
  structMap,
  sym,
  u32,
  u64,
  vec,
  VOID
} from "../../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { cpuCosts } from "../../../../../plugins/ledger-local/engine/state/cpuCosts.ts"
import { InstructionMeter } from "../../../../../plugins/ledger-local/engine/host/InstructionMeter.ts"
import { Values } from "../../../../../plugins/ledger-local/engine/wasm/Values.ts"
import type { ScVal } from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { crypto, errorOf, ledgerSeq, succeeded } from "../World.ts"
import { call, contract, execute, hostImport, I32, I64, signed, text, VOID_BODY, world } from "./assemble.ts"

describe("a wasm contract", () => {
  it("uploads, creates and calls a wasm contract", () => {
    expect(succeeded(call(contract({ body: VOID_BODY }))).returnValue).toEqual(VOID)
  })

  it("calls host functions", () => {
    const ledger = call(contract({ body: [0x10, 0], imports: [hostImport("x", "3", 1)] }))
    expect(succeeded(ledger).returnValue).toEqual(u32(ledgerSeq))
  })

  it("keeps its cost inputs with the code", () => {
    const on = world()
    const code = contract({ body: VOID_BODY })
    succeeded(execute(on, { type: 2, wasm: code })).changes.commit()
    const entry = on.store.getEntry(contractCodeKey(crypto.sha256(code)))
    const ext = entry?.data.type === 7 ? entry.data.contractCode.ext : undefined
    expect(ext?.v === 1 && ext.v1.costInputs).toMatchObject({ nInstructions: 2, nFunctions: 1, nTypes: 7, nExports: 2 })
  })
})

describe("a hostile module", () => {
  const refused = (code: Uint8Array): string => errorOf(execute(world(), { type: 2, wasm: code }))

  it("an endless loop runs out of fuel within a second", () => {
    const started = process.cpuUsage()
    const error = errorOf(call(contract({ body: [0x03, 0x40, 0x0c, 0, 0x0b, ...VOID_BODY] })))
    expect(error).toMatch(/^Error\(Budget, ExceededLimit\)/)
    expect(process.cpuUsage(started).user / 1_000).toBeLessThan(5_000)
  })

  it("endless recursion fails", () => {
    expect(errorOf(call(contract({ body: [0x10, 0] })))).toMatch(/^Error\(Budget, ExceededLimit\)/)
  })

  it("limits memory to the network's maximum", () => {
    // memory.grow(60000) answers -1; shifted into a u32 value's high half.
    const grow = [0x41, ...[0xe0, 0xd4, 3], 0x40, 0, 0xac, 0x42, 32, 0x86, 0x42, 4, 0x84]
    expect(succeeded(call(contract({ body: grow }))).returnValue).toEqual(u32(0xffff_ffff))
  })

  it("a module cannot accumulate values without end", () => {
    // v = vec_push_back(v, v) forever: each value is small to make and huge to write.
    const locals = [1, 1, I64]
    const body = [0x10, 0, 0x21, 0, 0x03, 0x40, 0x20, 0, 0x20, 0, 0x10, 1, 0x21, 0, 0x0c, 0, 0x0b, ...VOID_BODY]
    const code = contract({ locals, body, imports: [hostImport("v", "_", 1), hostImport("v", "6", 2)] })
    expect(errorOf(call(code))).toMatch(/ExceededLimit/)
  })

  it("refuses to return a value with a huge encoding", () => {
    const locals = [2, 1, I64, 1, I32]
    // Twenty-four times v = [v, v]; a map or vector that repeats itself.
    const body = [
      0x10, 0, 0x21, 0, 0x03, 0x40, 0x10, 0, 0x20, 0, 0x10, 1, 0x20, 0, 0x10, 1, 0x21, 0, 0x20, 1, 0x41, 1, 0x6a, 0x22,
      1, 0x41, 24, 0x48, 0x0d, 0, 0x0b, 0x20, 0
    ]
    const code = contract({ locals, body, imports: [hostImport("v", "_", 1), hostImport("v", "6", 2)] })
    expect(errorOf(call(code))).toMatch(/ExceededLimit/)
  })

  it("reads and writes no memory but its own", () => {
    // bytes_new_from_linear_memory(u32 65530, u32 100)
    const word = (value: number): Array<number> => [0x42, ...signed((BigInt(value) << 32n) | 4n)]
    const code = contract({ body: [...word(65_530), ...word(100), 0x10, 0], imports: [hostImport("b", "3", 2)] })
    expect(errorOf(call(code))).toMatch(/^Error\(WasmVm, IndexBounds\)/)
  })

  it("a module cannot use an object handle it was not given", () => {
    const handle = [0x42, ...signed((7n << 32n) | 75n)]
    const code = contract({ body: [...handle, ...handle, 0x10, 0], imports: [hostImport("v", "6", 2)] })
    expect(errorOf(call(code))).toMatch(/unknown object reference/)
  })

  it("refuses floats, start functions, unknown imports and wrong environments at upload", () => {
    expect(refused(contract({ body: [0x43, 0, 0, 0, 0, 0x1a, ...VOID_BODY] }))).toMatch(/0x43 is not allowed/)
    expect(refused(contract({ body: VOID_BODY, extra: [8, 1, 0] }))).toMatch(/start functions/)
    expect(refused(contract({ body: VOID_BODY, imports: [[...text("a"), ...text("b"), 2, 0, 1]] }))).toMatch(
      /only functions/
    )
    expect(refused(contract({ body: VOID_BODY, protocol: 99 }))).toMatch(
      /^Error\(WasmVm, InvalidInput\) .*newer than host/
    )
    expect(refused(contract({ body: VOID_BODY }).slice(0, -32))).toMatch(/^Error\(WasmVm/)
    expect(refused(Uint8Array.of(1, 2, 3))).toMatch(/^Error\(WasmVm/)
  })

  it("refuses every truncated module without crashing", () => {
    const code = contract({ body: [0x03, 0x40, 0x0c, 0, 0x0b, ...VOID_BODY] })
    for (let length = 0; length < code.length; length++)
      expect(refused(code.slice(0, length))).toMatch(/^Error\(WasmVm/)
  })
})

describe("words of values", () => {
  it("values round-trip as small words or handles", () => {
    const values: ReadonlyArray<ScVal> = [
      VOID,
      { type: 0, b: true },
      u32(0xffff_ffff),
      { type: 4, i32: -1 },
      u64(1n),
      u64(1n << 63n),
      i64(-1n),
      i64(-(1n << 63n)),
      i128(5n),
      i128(-(1n << 120n)),
      sym("transfer"),
      sym("__check_auth"),
      sym("a_longer_symbol"),
      str("text"),
      vec([u32(1)]),
      structMap({ a: u32(1) }),
      { type: 2, error: { type: 0, contractCode: 7 } },
      { type: 2, error: { type: 9, code: 6 } }
    ]
    const table = new Values(new InstructionMeter(cpuCosts))
    for (const value of values) expect(compareScVal(table.value(table.word(value)), value)).toBe(0)
  })

  it("refuses words that encode no value", () => {
    const table = new Values(new InstructionMeter(cpuCosts))
    for (const word of [15n, 63n, 79n, 255n, (3n << 32n) | 72n])
      expect(() => table.value(word)).toThrow(/unknown object reference/)
  })
})
