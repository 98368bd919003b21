// Additions of protocol 28: contracts that run the code named by another contract (CAP-85), and maps with optional keys
// (CAP-86). Earlier protocols have neither.
import { describe, expect, it } from "vitest"
import { contractIdOf } from "../../../../../plugins/ledger-local/engine/host/createContract.ts"
import { testnet } from "../../../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { INSTANCE_KEY, sym, u32 as u32Value, vec, VOID } from "../../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { contractAddress, type ScVal, xdrText } from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { crypto, errorOf, networkId, sponsor, succeeded, type World } from "../World.ts"
import { call, contract, execute, hostImport, I64, section, signed, sized, VOID_BODY, world } from "./assemble.ts"

const DROP = 0x1a
const PERSISTENT = 1
const u32 = (value: number): Array<number> => [0x42, ...signed(BigInt.asIntN(64, (BigInt(value) << 32n) | 4n))]
const raw = (value: number): Array<number> => [0x42, ...signed(BigInt(value))]
const run = (index: number): Array<number> => [0x10, index]
const dataOf = (content: Iterable<number>): Array<number> => section(11, [0, 0x41, 0, 0x0b, ...sized([...content])])

const at = (protocol: number): World => {
  const made = world()
  made.settings = { ...testnet, protocolVersion: protocol }
  return made
}

/** Code that returns seven; a reference points to it below. */
const target = contract({ body: u32(7) })
const targetHash = crypto.sha256(target)
const tagText = new TextEncoder().encode("fleet")
const imports = [
  hostImport("b", "3", 2),
  hostImport("b", "i", 2),
  hostImport("l", "h", 3),
  hostImport("l", "_", 4),
  hostImport("l", "2", 2)
]
const [bytesFrom, stringFrom, makeTag, put, remove] = imports.map((_, i) => run(i))
const tag = [...u32(32), ...u32(tagText.length), ...stringFrom!, ...makeTag!]
const hash = [...u32(0), ...u32(32), ...bytesFrom!]

const owner = (body: ReadonlyArray<number>): Uint8Array =>
  contract({
    imports,
    locals: [1, 1, I64],
    body: [...body, ...VOID_BODY],
    after: dataOf([...targetHash, ...tagText]),
    protocol: 28
  })
const naming = (kind: number, value = hash): Array<number> => [...tag, ...value, ...raw(kind), ...put!, DROP]

const ownerId = contractIdOf(crypto, networkId, {
  type: 0,
  fromAddress: { address: sponsor.address, salt: new Uint8Array(32) }
})
const preimage = { type: 0 as const, fromAddress: { address: sponsor.address, salt: new Uint8Array(32).fill(1) } }
const executable = {
  type: 2 as const,
  externalRef: { executableOwner: contractAddress(ownerId), tag: xdrText("fleet") }
}
const follower = contractAddress(contractIdOf(crypto, networkId, preimage))

const created = (on: World) =>
  execute(on, { type: 3, createContractV2: { contractIdPreimage: preimage, executable, constructorArgs: [] } })

const uploaded = (on: World): World => {
  succeeded(execute(on, { type: 2, wasm: target })).changes.commit()
  return on
}

describe("a contract with a referenced executable", () => {
  it("runs the referenced code, and its instance names the reference", () => {
    const on = uploaded(at(28))
    succeeded(call(owner(naming(PERSISTENT)), on)).changes.commit()
    const { changes } = succeeded(created(on))
    const instance = [...changes.changes()].map(({ after }) => after?.data)
    expect(instance).toContainEqual(
      expect.objectContaining({
        contractData: expect.objectContaining({
          key: INSTANCE_KEY,
          val: { type: 19, instance: { executable, storage: null } }
        })
      })
    )
    changes.commit()
    const invokeContract = { contractAddress: follower, functionName: xdrText("run"), args: [] }
    expect(succeeded(execute(on, { type: 0, invokeContract })).returnValue).toEqual(u32Value(7))
  })

  it("refuses a reference without named code or before protocol 28", () => {
    expect(errorOf(created(uploaded(at(28))))).toMatch(/^Error\(Storage, MissingValue\) executable reference entry/)
    expect(errorOf(created(uploaded(at(27))))).toMatch(/^Error\(Value, InvalidInput\)/)
    expect(() => call(owner(naming(PERSISTENT)), uploaded(at(27)))).toThrow(/WasmVm, InvalidInput/)
  })

  it("a reference entry is persistent, names existing code, and is never removed", () => {
    const end = (body: ReadonlyArray<number>): string => errorOf(call(owner(body), uploaded(at(28))))
    expect(end(naming(0))).toMatch(/^Error\(Storage, InvalidInput\) .*persistent/)
    expect(end(naming(2))).toMatch(/^Error\(Storage, InvalidInput\) .*persistent/)
    expect(end(naming(PERSISTENT, u32(1)))).toMatch(/^Error\(Storage, InvalidInput\) .*32-byte/)
    const other = [...u32(1), ...u32(32), ...bytesFrom!]
    expect(end(naming(PERSISTENT, other))).toMatch(/^Error\(Storage, MissingValue\) Wasm does not exist/)
    expect(end([...naming(PERSISTENT), ...tag, ...raw(PERSISTENT), ...remove!, DROP])).toMatch(
      /^Error\(Storage, InvalidAction\) .*cannot be deleted/
    )
  })
})

describe("a sparse map", () => {
  const keys = ["a", "bb", "ccc"]
  const text = new TextEncoder().encode("abbccc")
  const slices = (names: ReadonlyArray<number>): Array<number> => {
    const starts = [0, 1, 3]
    return names.flatMap((name) => [starts[name]!, 0, 0, 0, keys[name]!.length, 0, 0, 0])
  }
  const word = (low: number, high: number): Array<number> => [low, 0, 0, 0, high, 0, 0, 0]
  const [SLICES, VALUES] = [8, 40]
  const module = (order: ReadonlyArray<number>, body: ReadonlyArray<number>): Uint8Array => {
    const memory = [...text, 0, 0, ...slices(order), ...new Array<number>(VALUES - SLICES - 8 * order.length).fill(0)]
    const values = [...word(4, 1), ...word(2, 0), ...word(4, 3)]
    const functions = [hostImport("m", "b", 4), hostImport("m", "c", 5), hostImport("v", "g", 2)]
    return contract({
      imports: functions,
      locals: [1, 1, I64],
      body,
      after: dataOf([...memory, ...values]),
      protocol: 28
    })
  }
  const made = [...u32(SLICES), ...u32(VALUES), ...u32(3), ...run(0)]
  const entry = (key: string, value: number): { key: ScVal; val: ScVal } => ({ key: sym(key), val: u32Value(value) })

  it("a sparse map omits void values and returns void for them", () => {
    expect(succeeded(call(module([0, 1, 2], made), at(28))).returnValue).toEqual({
      type: 17,
      map: [entry("a", 1), entry("ccc", 3)]
    })
    const back = [...made, ...u32(SLICES), ...u32(200), ...u32(3), ...run(1), DROP, ...u32(200), ...u32(3), ...run(2)]
    expect(succeeded(call(module([0, 1, 2], back), at(28))).returnValue).toEqual(vec([u32Value(1), VOID, u32Value(3)]))
  })

  it("refuses a sparse map whose keys are not in order", () => {
    expect(errorOf(call(module([0, 2, 1], made), at(28)))).toMatch(/^Error\(Object, InvalidInput\)/)
    expect(errorOf(call(module([1, 0, 2], made), at(28)))).toMatch(/^Error\(Object, InvalidInput\)/)
  })

  it("sparse maps require protocol 28", () => {
    expect(() => call(module([0, 1, 2], made), at(27))).toThrow(/WasmVm, InvalidInput/)
  })
})
