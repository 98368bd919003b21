// What a scene plays on, and what it is.
import type { Alerts } from "./Alerts.ts"
import type { World } from "./World.ts"

export interface Stage {
  readonly world: World
  readonly alerts: Alerts
}

export interface Scene {
  readonly name: string
  /** The figures, as one line. */
  readonly play: (stage: Stage) => Promise<string>
}
