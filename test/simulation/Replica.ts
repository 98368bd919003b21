// One process of the facilitator, as long as it lives: its keys, its clock, the nodes that it stopped using, and the
// time when a request in it first read the store.
import { Context } from "effect"
import type { Keys } from "./keys.ts"

/** When a request first read the store. A request that read before the settlement was recorded is its twin. */
export interface FirstRead {
  at: number | undefined
  /** When its answer was ready to be sent. */
  answeredAt?: number
}
export const Reading = Context.Reference<FirstRead>("test/simulation/FirstRead", {
  defaultValue: () => ({ at: undefined })
})

let replicas = 0

export class Replica {
  readonly name: string
  /** Its id in the deliveries. */
  readonly process: string
  readonly keys: Keys
  isAlive = true
  /** Error of this machine's clock in milliseconds. */
  skewMillis: number
  /** Numbers of the nodes that it no longer asks. */
  unfit: ReadonlySet<number> = new Set()
  /** Nodes that contradicted others. */
  readonly distrusted = new Set<number>()
  constructor(name: string, keys: Keys, skewMillis: number) {
    this.name = name
    replicas += 1
    this.process = `${name} ${replicas}`
    this.keys = keys
    this.skewMillis = skewMillis
  }
}
