// What each call costs, and how many channels one claim takes, compared with the tables of the README.
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import type { HostResult } from "../../../../plugins/ledger-local/engine/host/HostResult.ts"
import { batchFolder } from "../../../contract/batch.ts"
import { payer, succeeded } from "../../ledger-local/engine/World.ts"
import { BatchWorld } from "./BatchWorld.ts"
import { type Cost, costOf } from "./costs.ts"

const wasm = Uint8Array.from(readFileSync(`${batchFolder}batch.wasm`))
const readme = readFileSync(`${batchFolder}../README.md`, "utf8")
const grouped = (value: number | bigint): string => String(value).replace(/\B(?=(\d{3})+$)/g, " ")
const saltOf = (n: number) => n.toString(16).padStart(64, "0")

const worldOf = (channels: number) => {
  const world = new BatchWorld(wasm)
  world.line(payer, 1_000_000n)
  const configs = Array.from({ length: channels }, (_, i) => world.config({ salt: saltOf(i) }))
  const costs = configs.map((config) => cost(world, world.deposit(config, 1_000n)))
  return { world, configs, costs }
}

const cost = (world: BatchWorld, result: HostResult): Cost => {
  const success = succeeded(result)
  success.changes.commit()
  return costOf(world, success)
}

const exceeds = ({ settings: { limits } }: BatchWorld, one: Cost): ReadonlyArray<string> =>
  Object.entries({
    instructions: one.instructions > limits.txInstructionsMax,
    size: one.sizeBytes > limits.txSizeBytesMax,
    entries: one.writeEntries > limits.txWriteEntriesMax,
    footprint: one.footprintEntries > limits.txFootprintEntriesMax,
    written: one.writeBytes > limits.txWriteBytesMax,
    events: one.eventsBytes > limits.txEventsBytesMax
  }).flatMap(([name, isOver]) => (isOver ? [name] : []))

describe("the cost of the batch contract", () => {
  it("each call costs what the README says, within a twentieth", () => {
    const { configs, costs, world } = worldOf(40)
    const [config] = configs as [(typeof configs)[number]]
    const claim = (count: number, total: bigint) =>
      cost(world, world.claim(configs.slice(0, count).map((one) => ({ config: one, max: total, total }))))
    const measured: ReadonlyArray<readonly [name: string, cost: Cost]> = [
      ["deposit that opens a channel", costs[1]!],
      ["deposit that tops it up", cost(world, world.deposit(config, 1_000n))],
      ["a receiver's first claim, 1 channel", claim(1, 10n)],
      ["claim of 1 channel", claim(1, 20n)],
      ["claim of 10 channels", claim(10, 30n)],
      ["claim of 40 channels", claim(40, 40n)],
      ["settle", cost(world, world.settle())],
      ["refund", cost(world, world.refund(config, 10n))],
      ["withdraw_start", cost(world, world.withdrawStart(config))],
      ["withdraw_end", ((world.closeTime += 900n), cost(world, world.withdrawEnd(config)))]
    ]
    const row = ([name, { feeStroops, instructions }]: (typeof measured)[number]) =>
      `| ${name} | ${grouped(instructions)} | ${grouped(feeStroops)} |`
    const stated = new Map(
      readme.split("\n").map((line) => {
        const [, name, instructions, fee] = line.split("|").map((cell) => cell.trim())
        return [name, [instructions, fee].map((cell) => Number((cell ?? "").replaceAll(" ", "")))] as const
      })
    )
    const off = measured.filter(([name, { feeStroops, instructions }]) => {
      const [said = 0, saidFee = 0] = stated.get(name) ?? []
      return !(Math.abs(said / instructions - 1) < 0.05 && Math.abs(saidFee / Number(feeStroops) - 1) < 0.05)
    })
    expect(off.map(row), measured.map(row).join("\n")).toEqual([])
  })

  it("one transaction claims 199 channels: the next would write one entry too many", () => {
    const { configs, world } = worldOf(200)
    const claim = (count: number, total: bigint) =>
      cost(world, world.claim(configs.slice(0, count).map((one) => ({ config: one, max: total, total }))))
    expect(exceeds(world, claim(199, 10n))).toEqual([])
    expect(exceeds(world, claim(200, 20n))).toEqual(["entries"])
    expect(readme).toContain("199 channels")
  })
})
