// Values that are nested more deeply than the network converts, wherever one can come in: made by a contract level by
// level, read from bytes, or given with the transaction. Each ends as the host's own limit error, never as an error of
// the engine.
import { describe, expect, it } from "vitest"
import { contractIdOf } from "../../../../../plugins/ledger-local/engine/host/createContract.ts"
import { deepSize } from "../../../../../plugins/ledger-local/engine/xdr/deepSize.ts"
import { u32, vec } from "../../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { contractAddress, type ScVal, xdrText } from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { crypto, errorOf, networkId, sponsor, succeeded } from "../World.ts"
import { call, contract, execute, hostImport, I64, section, signed, sized, VOID_BODY, world } from "./assemble.ts"

const LIMIT = /^Error\(Context, ExceededLimit\)/
const I32 = 0x7f
const u32Word = (value: number): Array<number> => [0x42, ...signed(BigInt.asIntN(64, (BigInt(value) << 32n) | 4n))]

const nested = (levels: number): ScVal => {
  let value: ScVal = vec([])
  for (let i = 1; i < levels; i++) value = vec([value])
  return value
}

/** Leaves a vector of `levels` levels on the stack: one level a turn of a loop. Imports are `v._` and `v.6`. */
const nesting = (levels: number): Array<number> => [
  ...[0x10, 0, 0x21, 0],
  ...[0x03, 0x40, 0x10, 0, 0x20, 0, 0x10, 1, 0x21, 0],
  ...[0x20, 1, 0x41, 1, 0x6a, 0x22, 1, 0x41, ...signed(BigInt(levels - 1)), 0x48, 0x0d, 0, 0x0b],
  ...[0x20, 0]
]
const imports = [hostImport("v", "_", 1), hostImport("v", "6", 2)]
const locals = [2, 1, I64, 1, I32]

describe("a value that a contract nests", () => {
  it.each([100, 5_000, 20_000])("%i levels deep cannot be returned", (levels) => {
    expect(errorOf(call(contract({ imports, locals, body: nesting(levels) })))).toMatch(LIMIT)
  })

  it("within the limit is returned as it is", () => {
    expect(succeeded(call(contract({ imports, locals, body: nesting(99) }))).returnValue).toEqual(nested(99))
  })

  it("a nested value that stays in the contract costs only its parts", () => {
    const body = [...nesting(5_000), 0x1a, ...VOID_BODY]
    expect(succeeded(call(contract({ imports, locals, body }))).returnValue).toEqual({ type: 1 })
  })

  it.each([150, 375, 5_000])("%i levels deep cannot be read from its bytes", (levels) => {
    const head = [0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0]
    const bytes = Array.from({ length: levels }, (_, i) => [...head, i === levels - 1 ? 0 : 1]).flat()
    const body = [...u32Word(0), ...u32Word(bytes.length), 0x10, 0, 0x10, 1]
    const after = section(11, [0, 0x41, 0, 0x0b, ...sized(bytes)])
    const code = contract({ imports: [hostImport("b", "3", 2), hostImport("b", "0", 3)], body, after })
    expect(errorOf(call(code))).toMatch(LIMIT)
  })
})

describe("a value that a transaction nests too deeply", () => {
  const on = world()
  const code = contract({ body: VOID_BODY })
  succeeded(execute(on, { type: 2, wasm: code })).changes.commit()
  const executable = { type: 0 as const, wasmHash: crypto.sha256(code) }
  const contractIdPreimage = { type: 0 as const, fromAddress: { address: sponsor.address, salt: new Uint8Array(32) } }

  it.each([100, 350, 20_000])("refuses an argument of %i levels", (levels) => {
    const target = contractAddress(contractIdOf(crypto, networkId, contractIdPreimage))
    const invokeContract = { contractAddress: target, functionName: xdrText("run"), args: [nested(levels)] }
    expect(errorOf(execute(on, { type: 0, invokeContract }))).toMatch(LIMIT)
  })

  it.each([100, 350, 20_000])("refuses a constructor argument of %i levels", (levels) => {
    const constructorArgs = [u32(1), nested(levels)]
    expect(
      errorOf(execute(on, { type: 3, createContractV2: { contractIdPreimage, executable, constructorArgs } }))
    ).toMatch(LIMIT)
  })
})

describe("the measure of a value", () => {
  it("measures all levels of a value, counting shared parts each time", () => {
    expect(deepSize(nested(200_000)).levels).toBe(200_000)
    let tree: ScVal = vec([])
    for (let i = 0; i < 60; i++) tree = vec([tree, tree])
    expect(deepSize(tree)).toMatchObject({ levels: 61 })
    expect(deepSize(tree).bytes).toBeGreaterThan(2 ** 60)
  })

  it("measures a vector of very many vectors", () => {
    expect(deepSize(vec(Array.from({ length: 300_000 }, () => vec([])))).levels).toBe(2)
  })
})
