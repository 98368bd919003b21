// What the process that this runs in is, and what it has used. A platform that cannot tell leaves it out.
import { Context, type Effect } from "effect"

export interface ResourceUse {
  /** Of all its threads, since its start. */
  readonly cpuSeconds: number
  readonly residentBytes: number
}

export interface ProcessFacts {
  /** Of this program. */
  readonly version: string
  /** `node` or `deno`, and its version. */
  readonly runtime: string
  readonly runtimeVersion: string
  /** Unix seconds. */
  readonly startedAtSeconds: number
  readonly usage: Effect.Effect<ResourceUse>
}

export const ProcessUsage = Context.Reference<ProcessFacts | undefined>("tollkeeper/platform/ProcessUsage", {
  defaultValue: () => undefined
})
