// A scene, and the objects that it uses.
import type { Alerts } from "./Alerts.ts"
import type { World } from "./World.ts"

export interface Stage {
  readonly world: World
  readonly alerts: Alerts
}

export interface Scene {
  readonly name: string
  /** Runs the scene; returns its figures as one line. */
  readonly play: (stage: Stage) => Promise<string>
}
