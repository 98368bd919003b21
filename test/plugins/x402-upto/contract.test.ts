import { readFileSync } from "node:fs"
import { beforeAll, describe, expect, it } from "vitest"
import type { HostResult } from "../../../plugins/ledger-local/engine/host/HostResult.ts"
import { address, bytes, i128, readI128, sym, u32, u64, VOID } from "../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { latin1, type ScAddress, type ScVal, textOf } from "../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { wasmBase64, wasmHash } from "../../../plugins/x402-upto/contract/settleWasm.ts"
import { draftWasm } from "../../../plugins/x402-upto/contract/drafts/draftWasm.ts"
import { buildContract, contractFolder, sha256Hex, wasmSource } from "../../contract/build.ts"
import { buildDraft, drafts, draftsFolder, draftsSource } from "../../contract/drafts.ts"
import {
  errorOf,
  issuer,
  lineBalance,
  payee,
  payer,
  sponsor,
  stranger,
  succeeded
} from "../ledger-local/engine/World.ts"
import { settlementId, type Settling, UptoWorld } from "./contractWorld.ts"

const source = (name: string) => readFileSync(new URL(`../../contract/${name}`, import.meta.url), "utf8")

let wasm: Uint8Array
let tokenWasm: Uint8Array
let walletWasm: Uint8Array
beforeAll(async () => {
  wasm = await buildContract()
  tokenWasm = await buildContract(source("token.as"))
  walletWasm = await buildContract(source("wallet.as"))
})

const settled = (world: UptoWorld, changes: Settling = {}) => {
  const result = succeeded(world.settle(changes))
  result.changes.commit()
  return result
}

/** The contract's own error number, or any other error. */
const refusalOf = (result: HostResult): string => /Contract, #(\d+)/.exec(errorOf(result))?.[1] ?? errorOf(result)

const balances = (world: UptoWorld) => [lineBalance(world.store, payer), lineBalance(world.store, payee)]

const plain = (value: ScVal): unknown => {
  switch (value.type) {
    case 10:
      return readI128(value)
    case 13:
      return value.bytes
    case 15:
      return textOf(value.sym)
    case 17:
      return Object.fromEntries((value.map ?? []).map(({ key, val }) => [plain(key), plain(val)]))
    case 18:
      return value.address
    default:
      return value
  }
}

describe("the module of the settlement contract", () => {
  it("the module is the byte-exact build of its source", () => {
    expect(sha256Hex(wasm)).toBe(wasmHash)
    expect(sha256Hex(readFileSync(`${contractFolder}settle.wasm`))).toBe(wasmHash)
    expect(sha256Hex(Buffer.from(wasmBase64, "base64"))).toBe(wasmHash)
    expect(readFileSync(`${contractFolder}settleWasm.ts`, "utf8")).toBe(wasmSource(wasm))
  })

  it("the module of each draft is its source's build too", async () => {
    const modules = await Promise.all(drafts.map(async (draft) => [draft, await buildDraft(draft)] as const))
    for (const [draft, module] of modules) {
      expect(sha256Hex(module)).toBe(draftWasm[draft].hash)
      expect(sha256Hex(readFileSync(`${draftsFolder}${draft}.wasm`))).toBe(draftWasm[draft].hash)
    }
    expect(readFileSync(`${draftsFolder}draftWasm.ts`, "utf8")).toBe(draftsSource(modules))
  })

  it("the module exports one function and imports nothing that could upgrade", () => {
    const module = new WebAssembly.Module(wasm as Uint8Array<ArrayBuffer>)
    expect(WebAssembly.Module.exports(module).map(({ name }) => name)).toEqual(["settle", "memory"])
    const imports = WebAssembly.Module.imports(module).map((entry) => `${entry.module}.${entry.name}`)
    expect(imports.sort()).toEqual(
      ["a.0", "a._", "b.8", "b.j", "d._", "i.7", "i.8", "l.0", "l.7", "l._", "m.9", "v.g", "x.0", "x.1", "x.3"].concat(
        "x.5",
        "x.7"
      )
    )
    const custom = (name: string) => WebAssembly.Module.customSections(module, name).length
    expect(["contractenvmetav0", "contractspecv0", "contractmetav0"].map(custom)).toEqual([1, 1, 1])
  })

  it("the module says that it has not been audited", () => {
    const [meta] = WebAssembly.Module.customSections(
      new WebAssembly.Module(wasm as Uint8Array<ArrayBuffer>),
      "contractmetav0"
    )
    expect(latin1(new Uint8Array(meta!))).toMatch(/audited.*no/s)
  })
})

describe("a settlement", () => {
  it("a settlement moves the actual amount directly and leaves no allowance", () => {
    const world = new UptoWorld(wasm)
    const result = settled(world, { actual: 250n })
    expect(balances(world)).toEqual([750n, 250n])
    expect(readI128(result.returnValue)).toBe(250n)
    expect(readI128(world.allowance(payer.address))).toBe(0n)
  })

  it("a settlement moves the maximum, and one atom", () => {
    for (const actual of [600n, 1n]) {
      const world = new UptoWorld(wasm)
      settled(world, { actual })
      expect(balances(world)).toEqual([1_000n - actual, actual])
    }
  })

  it("a settlement handles amounts above 64 bits, in either form", () => {
    for (const max of [(1n << 55n) - 1n, 1n << 55n, (1n << 64n) + 5n, (1n << 127n) - 1n]) {
      const world = new UptoWorld(wasm)
      settled(world, { max: i128(max), actual: 7n })
      expect(balances(world)).toEqual([993n, 7n])
      expect(refusalOf(new UptoWorld(wasm).settle({ max: i128(max), actual: 1_001n }))).toBe("10")
    }
    const between = { max: i128((1n << 64n) + 5n), actual: (1n << 64n) + 6n }
    expect(refusalOf(new UptoWorld(wasm).settle(between))).toBe("104")
    expect(refusalOf(new UptoWorld(wasm).settle({ max: i128(1n << 64n), actual: (1n << 65n) + 1n }))).toBe("104")
  })

  it("a settlement of zero moves nothing and spends the authorization", () => {
    const world = new UptoWorld(wasm)
    const { events } = settled(world, { actual: 0n })
    expect(events).toHaveLength(1)
    expect(balances(world)).toEqual([1_000n, 0n])
    expect(refusalOf(world.settle({ actual: 0n, payerNonce: 9n, facilitatorNonce: 10n }))).toBe("109")
    expect(errorOf(world.settle({ actual: 5n, facilitatorNonce: 10n }))).toMatch(/Auth, ExistingValue/)
  })

  it("a settlement emits allowance, transfer, allowance end and event, in order", () => {
    const world = new UptoWorld(wasm)
    const { events } = settled(world, { actual: 250n })
    expect(events.map(({ body }) => plain(body.v0.topics[0]!))).toEqual([
      "approve",
      "transfer",
      "approve",
      "upto_settled"
    ])
    const last = events.at(-1)!
    expect(last.body.v0.topics.map(plain)).toEqual(["upto_settled", payer.address, payee.address, world.usdToken])
    expect(plain(last.body.v0.data)).toEqual({
      actual: 250n,
      facilitator: sponsor.address,
      max: 600n,
      settlement_id: new Uint8Array(32).fill(1)
    })
  })

  it("a settlement costs less than its instruction limit", () => {
    expect(settled(new UptoWorld(wasm)).instructions).toBeLessThan(4_000_000)
  })
})

describe("bounds", () => {
  const now = new UptoWorld(Uint8Array.from(Buffer.from(wasmBase64, "base64"))).ledger
  it.each<readonly [name: string, changes: Settling, code: string]>([
    ["an amount above the maximum", { actual: 601n }, "104"],
    ["a negative amount", { actual: -1n }, "103"],
    ["the most negative amount", { actual: -(1n << 127n) }, "103"],
    ["a maximum of zero", { max: i128(0n), actual: 0n }, "102"],
    ["a negative maximum", { max: i128(-5n), actual: -6n }, "102"],
    ["a window that has not begun", { validAfter: u32(now + 1) }, "105"],
    ["a window that has ended", { deadline: u32(now - 1) }, "106"],
    ["a deadline too far", { deadline: u32(now + 518_401) }, "107"],
    ["a payer that pays itself", { payTo: payer.address }, "108"],
    ["amounts of another type", { actual: u64(5n) }, "101"],
    ["a maximum of another type", { max: u64(500n) }, "101"],
    ["ledgers of another type", { deadline: u64(BigInt(now + 5)) }, "101"],
    ["a beginning of another type", { validAfter: u64(1n) }, "101"],
    ["an id of another type", { settlementId: sym("id") }, "101"],
    ["an id of 31 bytes", { settlementId: bytes(new Uint8Array(31)) }, "101"],
    ["an id of 33 bytes", { settlementId: bytes(new Uint8Array(33)) }, "101"],
    ["an amount that is nothing", { actual: VOID }, "101"]
  ])("the contract refuses %s and changes nothing", (_name, changes, code) => {
    const world = new UptoWorld(wasm)
    expect(refusalOf(world.settle(changes))).toBe(code)
    expect(balances(world)).toEqual([1_000n, 0n])
    expect(world.spentUntil(payer.address, settlementId(1))).toBeUndefined()
  })

  it.each<readonly [name: string, changes: (world: UptoWorld) => Settling]>([
    ["the contract as recipient", (world) => ({ payTo: world.upto })],
    ["the token as recipient", (world) => ({ payTo: world.usdToken })],
    ["the contract as payer", (world) => ({ payer: world.upto, payerKey: "none" })]
  ])("the contract refuses %s", (_name, changes) => {
    const world = new UptoWorld(wasm)
    expect(refusalOf(world.settle(changes(world)))).toBe("108")
  })

  it("the contract refuses a multiplexed recipient", () => {
    const id = payee.id.ed25519
    const muxed = { type: 2, muxedAccount: { id: 5n, ed25519: id } } as ScAddress
    expect(refusalOf(new UptoWorld(wasm).settle({ payTo: muxed }))).toBe("101")
  })

  it("the time window includes both ends", () => {
    for (const changes of [{ validAfter: u32(now), deadline: u32(now) }, { deadline: u32(now + 518_400) }]) {
      settled(new UptoWorld(wasm), changes)
    }
  })
})

describe("what the payer signs", () => {
  const others: ReadonlyArray<readonly [name: string, changes: (world: UptoWorld) => Settling]> = [
    ["recipient", () => ({ payTo: stranger.address })],
    ["maximum", () => ({ max: i128(700n) })],
    ["beginning", (world) => ({ validAfter: u32(world.ledger - 1) })],
    ["deadline", (world) => ({ deadline: u32(world.ledger + 61) })],
    ["facilitator", () => ({ facilitator: stranger.address, facilitatorKey: stranger })],
    ["settlement id", () => ({ settlementId: settlementId(2) })]
  ]
  it.each(others)("the payer's signature binds the %s", (_name, changes) => {
    const world = new UptoWorld(wasm)
    const honest = world.promise(world.terms())
    const result = world.settle({ ...changes(world), payerSigns: () => honest })
    expect(errorOf(result)).toMatch(/Auth, InvalidAction.*Unauthorized/)
  })

  it("the payer's signature binds the token", () => {
    const world = new UptoWorld(wasm)
    const token = world.deploy(tokenWasm, new Uint8Array(32).fill(9))
    const honest = world.promise(world.terms())
    expect(errorOf(world.settle({ token, payerSigns: () => honest }))).toMatch(/Unauthorized/)
  })

  it("the payer's signature binds the contract", () => {
    const world = new UptoWorld(wasm)
    const other = world.deploy(wasm, new Uint8Array(32).fill(7))
    const honest = world.promise(world.terms())
    const forOther = { ...honest.function, contractFn: { ...contractFn(honest), contractAddress: other } } as never
    expect(errorOf(world.settle({ payerSigns: () => ({ ...honest, function: forOther }) }))).toMatch(/Unauthorized/)
  })

  it("a missing or another account's payer signature pays nothing", () => {
    const world = new UptoWorld(wasm)
    expect(errorOf(world.settle({ payerKey: stranger }))).toMatch(/Unauthorized/)
    expect(errorOf(world.settle({ payerKey: "none" }))).toMatch(/Unauthorized/)
  })

  it("the payer's signature must cover both allowances", () => {
    const world = new UptoWorld(wasm)
    for (const keep of [0, 1]) {
      const result = world.settle({
        payerSigns: (root) => ({ ...root, subInvocations: [root.subInvocations[keep]!] })
      })
      expect(errorOf(result)).toMatch(/Auth, InvalidAction/)
      expect(balances(world)).toEqual([1_000n, 0n])
    }
  })

  it("one payer signature settles any amount up to the maximum", () => {
    for (const actual of [0n, 1n, 599n, 600n]) settled(new UptoWorld(wasm), { actual })
  })
})

const contractFn = (root: ReturnType<UptoWorld["promise"]>) =>
  root.function.type === 0 ? root.function.contractFn : (undefined as never)

describe("the facilitator", () => {
  it("the facilitator must sign, so an observed payer signature is useless", () => {
    const world = new UptoWorld(wasm)
    expect(errorOf(world.settle({ facilitatorKey: "none" }))).toMatch(/Unauthorized/)
    expect(errorOf(world.settle({ facilitatorKey: stranger }))).toMatch(/Unauthorized/)
  })

  it("the facilitator signs the amount: another amount needs another signature", () => {
    const world = new UptoWorld(wasm)
    const facilitatorSigns = (root: ReturnType<UptoWorld["promise"]>) => {
      const signed = contractFn(root)
      const args = [...signed.args.slice(0, -1), i128(600n)]
      return { ...root, function: { type: 0 as const, contractFn: { ...signed, args } } }
    }
    expect(errorOf(world.settle({ actual: 250n, facilitatorSigns }))).toMatch(/Unauthorized/)
    settled(world, { actual: 600n, facilitatorSigns })
  })

  it("the facilitator's own balance does not change", () => {
    const world = new UptoWorld(wasm)
    world.line(sponsor, 0n)
    settled(world)
    expect(lineBalance(world.store, sponsor)).toBe(0n)
  })
})

describe("a settlement id", () => {
  it("a settlement id is spent once, even with new signatures and amounts", () => {
    const world = new UptoWorld(wasm)
    settled(world)
    const again = { actual: 100n, payerNonce: 17n, facilitatorNonce: 18n }
    expect(refusalOf(world.settle(again))).toBe("109")
    expect(balances(world)).toEqual([750n, 250n])
    settled(world, { ...again, settlementId: settlementId(2) })
    expect(balances(world)).toEqual([650n, 350n])
  })

  it("a settlement id stays spent until its deadline refuses it", () => {
    const world = new UptoWorld(wasm)
    const window = { validAfter: u32(world.ledger), deadline: u32(world.ledger + 100_000) }
    settled(world, window)
    expect(world.spentUntil(payer.address, settlementId(1))).toBe(world.ledger + 100_000)
    const again = { ...window, payerNonce: 17n, facilitatorNonce: 18n, expiration: world.ledger + 200_000 }
    world.ledger += 100_000
    expect(refusalOf(world.settle(again))).toBe("109")
    world.ledger += 1
    expect(refusalOf(world.settle(again))).toBe("106")
    expect(balances(world)).toEqual([750n, 250n])
  })

  it("a settlement id is per payer, so others cannot spend it first", () => {
    const world = new UptoWorld(wasm)
    world.line(stranger, 10n)
    settled(world, { payer: stranger.address, payerKey: stranger, actual: 1n })
    settled(world, { facilitatorNonce: 18n })
    expect(balances(world)).toEqual([750n, 251n])
  })

  it("a failed settlement does not spend its id", () => {
    const world = new UptoWorld(wasm)
    expect(refusalOf(world.settle({ max: i128(5_000n), actual: 1_001n }))).toBe("10")
    expect(world.spentUntil(payer.address, settlementId(1))).toBeUndefined()
    settled(world, { actual: 250n })
  })

  it("concurrent settlements of one payer keep separate allowances", () => {
    const world = new UptoWorld(wasm)
    settled(world, { actual: 600n })
    settled(world, { actual: 300n, settlementId: settlementId(2), payerNonce: 17n, facilitatorNonce: 18n })
    expect(balances(world)).toEqual([100n, 900n])
    expect(readI128(world.allowance(payer.address))).toBe(0n)
  })
})

describe("payers and recipients", () => {
  it("a payer with too little balance pays nothing and loses nothing", () => {
    const world = new UptoWorld(wasm)
    world.line(payer, 100n)
    expect(refusalOf(world.settle({ actual: 250n }))).toBe("10")
    expect(balances(world)).toEqual([100n, 0n])
    settled(world, { actual: 100n })
    expect(balances(world)).toEqual([0n, 100n])
  })

  it("a recipient without a trustline is not paid, and nothing changes", () => {
    const world = new UptoWorld(wasm)
    expect(refusalOf(world.settle({ payTo: issuer.address }))).toBe("110")
    expect(refusalOf(world.settle({ payTo: sponsor.address }))).toBe("13")
    expect(balances(world)).toEqual([1_000n, 0n])
  })

  it("a previous allowance to the contract is unused and ends as well", () => {
    const world = new UptoWorld(wasm)
    const approve = [address(payer.address), address(world.upto), i128(900n), u32(world.ledger + 50)]
    succeeded(world.call("approve", approve, { by: payer, nonce: 99n })).changes.commit()
    expect(refusalOf(world.settle({ actual: 601n }))).toBe("104")
    settled(world)
    expect(balances(world)).toEqual([750n, 250n])
    expect(readI128(world.allowance(payer.address))).toBe(0n)
  })

  it("a contract account pays by its own rules", () => {
    const world = new UptoWorld(wasm)
    const wallet = world.deploy(walletWasm, new Uint8Array(32).fill(5))
    world.contractBalance(wallet, 1_000n)
    const signs: Settling = { payer: wallet, payerKey: { ...payer, address: wallet } }
    settled(world, { ...signs, actual: 250n })
    expect(balances(world)).toEqual([1_000n, 250n])
  })
})

describe("a dishonest token", () => {
  const lying = (mode: number) => {
    const world = new UptoWorld(wasm)
    const token = world.deploy(tokenWasm, new Uint8Array(32).fill(9))
    const does = (fn: string, args: ReadonlyArray<ScVal>) => succeeded(world.invoke(token, fn, args)).changes.commit()
    does("mint", [address(payer.address), i128(2_000n)])
    does("mode", [u32(mode)])
    const held = (owner: ScAddress) => readI128(succeeded(world.invoke(token, "balance", [address(owner)])).returnValue)
    return { world, token, held: () => [held(payer.address), held(payee.address), held(world.upto)] }
  }

  it("an honest test token moves the amount", () => {
    const { held, token, world } = lying(0)
    settled(world, { token, actual: 250n })
    expect(held()).toEqual([1_750n, 250n, 0n])
  })

  it.each([
    ["moves half", 1],
    ["takes it twice", 2],
    ["gives it to the contract", 3],
    ["moves nothing", 4],
    ["takes an atom more than it gives", 5]
  ])("a token that %s while it announces the whole is refused", (_name, mode) => {
    const { held, token, world } = lying(mode)
    expect(refusalOf(world.settle({ token, actual: 250n }))).toBe("110")
    expect(held()).toEqual([2_000n, 0n, 0n])
  })

  it("a token cannot call back into the settlement", () => {
    const { held, token, world } = lying(6)
    expect(errorOf(world.settle({ token, actual: 250n }))).toMatch(/re-entry/)
    expect(held()).toEqual([2_000n, 0n, 0n])
  })
})
