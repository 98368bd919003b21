// The process's identity and resource usage. Values that a platform does not provide are absent.
import { Context, type Effect } from "effect"

interface ResourceUse {
  /** CPU time of all threads since the start. */
  readonly cpuSeconds: number
  readonly residentBytes: number
}

interface ProcessFacts {
  /** Version of this program. */
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
