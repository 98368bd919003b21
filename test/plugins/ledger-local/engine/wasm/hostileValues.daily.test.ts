// A contract that demands as much from the host as it can: values that double, trees that are small to hold and endless
// to write, floods of events, of calls and of authorizations, extreme lifetimes and numbers. Each ends with the
// network's error, within the memory and the instructions of one call, and nothing else is thrown.
import { readFileSync } from "node:fs"
import { beforeAll, describe, expect, it } from "vitest"
import { contractIdOf } from "../../../../../plugins/ledger-local/engine/host/createContract.ts"
import { WasmRuntime } from "../../../../../plugins/ledger-local/engine/wasm/WasmRuntime.ts"
import { u32 } from "../../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { contractAddress, xdrText } from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { buildContract } from "../../../../contract/build.ts"
import { interfaceSections } from "../../../../contract/sections.ts"
import { crypto, errorOf, networkId, sponsor, succeeded, type World } from "../World.ts"
import { execute, world } from "./assemble.ts"

const source = new URL("../../../../contract/hostile.as", import.meta.url)
const contractIdPreimage = { type: 0 as const, fromAddress: { address: sponsor.address, salt: new Uint8Array(32) } }

let on: World
beforeAll(async () => {
  const code = await buildContract(readFileSync(source, "utf8"), interfaceSections([]))
  on = world()
  succeeded(execute(on, { type: 2, wasm: code })).changes.commit()
  const executable = { type: 0 as const, wasmHash: crypto.sha256(code) }
  succeeded(execute(on, { type: 1, createContract: { contractIdPreimage, executable } })).changes.commit()
})

const errorOfCall = (fn: string, kind: number): string => {
  const id = contractAddress(contractIdOf(crypto, networkId, contractIdPreimage))
  const invokeContract = { contractAddress: id, functionName: xdrText(fn), args: [u32(kind)] }
  return errorOf(execute(on, { type: 0, invokeContract }, new WasmRuntime()))
}

const memory = /^Error\(Budget, ExceededLimit\) memory limit/
const tooLarge = /^Error\(Budget, ExceededLimit\) value is too large/
const tooDeep = /^Error\(Context, ExceededLimit\)/
const used = /^Error\(Budget, ExceededLimit\) instruction limit/

describe("a contract", () => {
  const values: ReadonlyArray<readonly [what: string, ends: RegExp]> = [
    ["doubles a vector forty times", memory],
    ["doubles bytes forty times", memory],
    ["writes out a tree of sixty levels", tooLarge],
    ["nests vectors beyond what a value may", tooDeep],
    ["nests vectors a hundred thousand times and writes them out", /^Error\((Budget|Context), ExceededLimit\)/],
    ["compares two trees of forty levels", tooLarge],
    ["searches for a tree in a vector of trees", tooLarge],
    ["makes a map of a million entries", memory],
    ["makes maps of themselves", tooLarge],
    ["shuffles a million numbers", /^Error\(Budget, ExceededLimit\)/],
    ["draws four gigabytes of random numbers", /^Error\(Budget, ExceededLimit\)/],
    ["reads a value from megabytes of nothing", /^Error\(Value, InvalidInput\)/],
    ["hashes megabytes without end", used],
    ["gives back a word that is no value", /^Error\(Value, InvalidInput\)/],
    ["gives back a tree of sixty-two levels", tooLarge]
  ]
  for (const [kind, [what, ends]] of values.entries())
    it(`that ${what} is stopped`, () => expect(errorOfCall("values", kind)).toMatch(ends))

  const acts: ReadonlyArray<readonly [what: string, ends: RegExp]> = [
    ["stores under a tree", tooLarge],
    ["stores a tree in its instance", tooLarge],
    ["writes its instance three thousand times", memory],
    ["lets a temporary entry live for ever", /^Error\(Storage, InvalidAction\)/],
    ["emits a million events", used],
    ["emits a tree", tooLarge],
    ["calls itself", /^Error\(Context, InvalidAction\) Contract re-entry/],
    ["calls itself and continues, without end", used],
    ["has a tree authorized", tooLarge],
    ["authorizes what is nested five thousand times", tooDeep],
    ["authorizes a tree", tooLarge],
    ["becomes what there is not", /^Error\(Storage, MissingValue\)/],
    ["creates a contract of code that there is not", /^Error\(Storage, MissingValue\)/]
  ]
  for (const [kind, [what, ends]] of acts.entries())
    it(`that ${what} is stopped`, () => expect(errorOfCall("run", kind)).toMatch(ends))
})
