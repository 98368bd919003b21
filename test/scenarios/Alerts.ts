// A scene's assertions about alerts: silent before, fired by the cause, cleared after it. Without Prometheus nothing is
// checked, and the printed line mentions it.
import { setTimeout as sleep } from "node:timers/promises"
import type { Monitor } from "./Monitor.ts"

/** Labels that the alert must have. */
type Labels = Readonly<Record<string, string>>

/** A rule's own time, the scrapes before it, and slack for a busy machine. */
const millisMax = 180_000

export class Alerts {
  readonly #monitor: Monitor | undefined

  constructor(monitor: Monitor | undefined) {
    this.#monitor = monitor
  }

  readonly #activeAlerts = async (name: string, labels: Labels) => {
    const all = (await this.#monitor?.activeAlerts()) ?? []
    return all.filter(
      (one) =>
        one.labels["alertname"] === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value)
    )
  }

  /** Throws if an alert is already active: a scene could not attribute it to its own cause. */
  readonly silent = async (...names: ReadonlyArray<string>): Promise<void> => {
    for (const name of names) {
      const [active] = await this.#activeAlerts(name, {})
      if (active !== undefined) throw new Error(`${name} is ${active.state} before anything was done`)
    }
  }

  /** Waits until no alert is active, after a scrape by Prometheus. */
  readonly calm = async (): Promise<void> => {
    const since = performance.now()
    const activeNames = async () =>
      ((await this.#monitor?.activeAlerts()) ?? []).map(({ labels }) => labels["alertname"])
    for (let names = await activeNames(); names.length > 0; names = await activeNames()) {
      if (performance.now() - since > millisMax) throw new Error(`${names.join(", ")} before anything was done`)
      await sleep(250)
    }
  }

  /** Waits until it fires; returns the elapsed time as text. */
  readonly fires = async (name: string, labels: Labels = {}): Promise<string> => {
    if (this.#monitor === undefined) return `${name} not checked`
    const since = performance.now()
    while (!(await this.#activeAlerts(name, labels)).some(({ state }) => state === "firing")) {
      if (performance.now() - since > millisMax) throw new Error(`${name} did not fire`)
      await sleep(250)
    }
    return `${name} fired after ${((performance.now() - since) / 1_000).toFixed(0)} s`
  }

  /** Waits until Prometheus reads another value of an expression than before. */
  readonly reads = async (expression: string, isNew: (value: number) => boolean): Promise<void> => {
    if (this.#monitor === undefined) return
    const since = performance.now()
    for (let value; value === undefined || !isNew(value); value = await this.#monitor.value(expression)) {
      if (performance.now() - since > millisMax) throw new Error(`${expression} is ${value} for ever`)
      await sleep(250)
    }
  }

  /** Waits until it is inactive. */
  readonly clears = async (...names: ReadonlyArray<string>): Promise<void> => {
    for (const name of names) {
      const since = performance.now()
      while ((await this.#activeAlerts(name, {})).length > 0) {
        if (performance.now() - since > millisMax) throw new Error(`${name} is still active`)
        await sleep(250)
      }
    }
  }
}
