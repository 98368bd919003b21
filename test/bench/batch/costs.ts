// The ledger costs of contract calls, measured on the contract's own test world.
import { readFileSync } from "node:fs"
import { batchFolder } from "../../contract/batch.ts"
import { BatchWorld } from "../../plugins/x402-batch/contract/BatchWorld.ts"
import { type Cost, costOf } from "../../plugins/x402-batch/contract/costs.ts"
import { payer, succeeded } from "../../plugins/ledger-local/engine/World.ts"

const counts = [1, 10, 40] as const

/** A deposit that opens a channel, and repeated claims of channels. */
export const contractCosts = (): ReadonlyArray<readonly [name: string, cost: Cost]> => {
  const world = new BatchWorld(Uint8Array.from(readFileSync(`${batchFolder}batch.wasm`)))
  world.line(payer, 1_000_000n)
  const cost = (result: Parameters<typeof succeeded>[0]): Cost => {
    const success = succeeded(result)
    success.changes.commit()
    return costOf(world, success)
  }
  const configs = Array.from({ length: 40 }, (_, at) => world.config({ salt: at.toString(16).padStart(64, "0") }))
  const deposits = configs.map((config) => cost(world.deposit(config, 1_000n)))
  const claim = (count: number, total: bigint) =>
    cost(world.claim(configs.slice(0, count).map((config) => ({ config, max: total, total }))))
  claim(1, 10n)
  return [
    ["deposit", deposits[1]!],
    ...counts.map((count, at) => [`claim of ${count}`, claim(count, BigInt(20 + at))] as const)
  ]
}
