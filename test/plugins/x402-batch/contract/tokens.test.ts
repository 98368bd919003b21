// Tokens that take fees, misreport their transfers or call back: each harms at most the channels of that token.
import { readFileSync } from "node:fs"
import { beforeAll, describe, expect, it } from "vitest"
import { address, bytes, i128, readI128, u32, u64, vec } from "../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import type { ScVal } from "../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { bytesOfHex } from "../../../../plugins/x402-batch/batchCodec.ts"
import { buildContract } from "../../../contract/build.ts"
import { buildBatch } from "../../../contract/batch.ts"
import { contractDataKey, errorOf, ledgerSeq, payee, payer, succeeded } from "../../ledger-local/engine/World.ts"
import { BatchWorld, textOf } from "./BatchWorld.ts"

let wasm: Uint8Array
let tokenWasm: Uint8Array
beforeAll(async () => {
  wasm = await buildBatch()
  tokenWasm = await buildContract(readFileSync(new URL("../../../contract/token.as", import.meta.url), "utf8"))
})

/** A world with a token of the payer's, and one channel of it. */
const withToken = () => {
  const world = new BatchWorld(wasm)
  const token = world.deploy(tokenWasm, new Uint8Array(32).fill(9))
  const does = (fn: string, args: ReadonlyArray<ScVal>) => succeeded(world.invoke(token, fn, args)).changes.commit()
  does("mint", [address(payer.address), i128(2_000n)])
  const config = world.config({ token: textOf(token) })
  const mode = (value: number) => does("mode", [u32(value)])
  const holdings = () => [payer.address, payee.address, world.batch].map((owner) => world.balance(token, owner))
  return { world, token, config, mode, holdings }
}

const moved = "Contract, #205"

describe("a deposit of such a token", () => {
  it("an honest one is credited in full", () => {
    const { config, holdings, world } = withToken()
    expect(readI128(succeeded(world.deposit(config, 500n)).returnValue)).toBe(500n)
    succeeded(world.deposit(config, 500n)).changes.commit()
    expect(holdings()).toEqual([1_500n, 0n, 500n])
  })

  it("a token that takes a fee is credited by what arrived", () => {
    const { config, holdings, mode, world } = withToken()
    mode(11)
    succeeded(world.deposit(config, 500n)).changes.commit()
    expect(world.channel(config)?.balance).toBe(250n)
    expect(holdings()).toEqual([1_500n, 0n, 250n])
  })

  it.each([
    ["moves twice the amount", 12],
    ["moves nothing", 13]
  ])("a token that %s is refused", (_name, how) => {
    const { config, mode, world } = withToken()
    mode(how)
    expect(errorOf(world.deposit(config, 500n))).toContain(moved)
    expect(world.channel(config)).toBeUndefined()
  })

  it("a token cannot call back into the contract", () => {
    const { config, mode, world } = withToken()
    mode(15)
    expect(errorOf(world.deposit(config, 500n))).toMatch(/re-entry/)
  })
})

describe("a payment out of such a token", () => {
  const claimed = () => {
    const one = withToken()
    succeeded(one.world.deposit(one.config, 500n)).changes.commit()
    succeeded(one.world.claim([{ config: one.config, max: 300n, total: 200n }])).changes.commit()
    return one
  }

  it("the contract's balance falls by just what is paid, whatever arrives", () => {
    const { config, holdings, mode, world } = claimed()
    mode(11)
    succeeded(world.settle(undefined, config.token)).changes.commit()
    expect(holdings()).toEqual([1_500n, 100n, 300n])
    expect(world.channel(config)).toMatchObject({ balance: 500n, totalClaimed: 200n })
  })

  it.each([
    ["takes twice the amount", 12],
    ["moves nothing", 13],
    ["takes an atom more", 14],
    ["takes nothing", 16]
  ])("a token that %s is not paid out", (_name, how) => {
    const { config, holdings, mode, world } = claimed()
    mode(how)
    expect(errorOf(world.settle(undefined, config.token))).toContain(moved)
    expect(errorOf(world.refund(config, 100n))).toContain(moved)
    succeeded(world.withdrawStart(config)).changes.commit()
    world.closeTime += 900n
    // Twice the rest exceeds the contract's holdings: then the token itself fails.
    expect(errorOf(world.withdrawEnd(config))).toMatch(/Contract, #205|Unreachable/)
    expect(holdings()).toEqual([1_500n, 0n, 500n])
  })

  it("it harms no channel of another token", () => {
    const { config, mode, world } = claimed()
    const honest = world.config()
    succeeded(world.deposit(honest, 400n)).changes.commit()
    mode(12)
    expect(errorOf(world.settle(undefined, config.token))).toContain(moved)
    succeeded(world.refund(honest, 400n)).changes.commit()
    expect(world.held()).toBe(0n)
  })
})

describe("amounts at the end of their range", () => {
  it("a balance that an amount does not hold is refused", () => {
    const world = new BatchWorld(wasm)
    const config = world.config()
    const key = bytes(bytesOfHex(world.id(config)))
    const put = (balance: bigint) =>
      world.contract(
        {
          type: 6,
          contractData: {
            ext: { v: 0 },
            contract: world.batch,
            key,
            durability: 1,
            val: vec([i128(balance), i128(0n), u64(0n), u64((1n << 56n) - 1n)])
          }
        },
        ledgerSeq + 500_000
      )
    put((1n << 127n) - 500n)
    expect(errorOf(world.deposit(config, 500n))).toContain("Contract, #206")
    put((1n << 64n) - 1n)
    succeeded(world.deposit(config, 1n)).changes.commit()
    expect(world.channel(config)?.balance).toBe(1n << 64n)
    expect(world.store.getEntry(contractDataKey(world.batch, key, 1))).toBeDefined()
    succeeded(world.refund(config, 1n, { nonce: (1n << 56n) - 1n })).changes.commit()
    expect(world.channel(config)?.refundNonce).toBe(1n << 56n)
  })

  it("amounts around the ends of their forms keep their value", () => {
    for (const balance of [(1n << 55n) - 1n, 1n << 55n, (1n << 56n) - 1n, 1n << 63n, (1n << 64n) - 1n, 1n << 64n]) {
      const world = new BatchWorld(wasm)
      const config = world.config()
      const key = bytes(bytesOfHex(world.id(config)))
      const val = vec([i128(balance), i128(0n), u64(0n), u64(0n)])
      world.contract(
        { type: 6, contractData: { ext: { v: 0 }, contract: world.batch, key, durability: 1, val } },
        ledgerSeq + 500_000
      )
      succeeded(world.claim([{ config, max: balance, total: 1n }])).changes.commit()
      succeeded(world.claim([{ config, max: balance, total: balance }])).changes.commit()
      expect(world.channel(config)).toMatchObject({ balance, totalClaimed: balance })
      expect(world.receiver()?.totalClaimed).toBe(balance)
      succeeded(world.deposit(config, 500n)).changes.commit()
      expect(readI128(succeeded(world.refund(config, 1_000n)).returnValue)).toBe(500n)
    }
  })
})
