// One process of the facilitator, as long as it lives: its keys, its clock, the nodes it gave up on; and when a request
// in it first looked at the store.
import { Context } from "effect"
import type { Keys } from "./keys.ts"

/** When a request first looked at the store; a twin of a settlement is who looked before it was recorded. */
export interface FirstRead {
  at: number | undefined
}
export const Reading = Context.Reference<FirstRead>("test/simulation/FirstRead", {
  defaultValue: () => ({ at: undefined })
})

export class Replica {
  readonly name: string
  readonly keys: Keys
  isAlive = true
  /** How far this machine's clock is off, milliseconds. */
  skewMillis: number
  /** Nodes that it asks no more, by their number. */
  unfit: ReadonlySet<number> = new Set()
  constructor(name: string, keys: Keys, skewMillis: number) {
    this.name = name
    this.keys = keys
    this.skewMillis = skewMillis
  }
}
