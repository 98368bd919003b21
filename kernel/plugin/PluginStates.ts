// The state of each enabled plugin, for readiness and the operator: `running`, or `degraded` with one bounded sentence.
// Written by the loader while plugins start; readable by all.
import { Context, Layer } from "effect"

export interface PluginState {
  readonly id: string
  readonly state: "running" | "degraded"
  /** Why it is degraded, at most 200 characters; absent while it runs. */
  readonly detail?: string
}

export class PluginStates extends Context.Service<
  PluginStates,
  {
    readonly all: () => ReadonlyArray<PluginState>
    readonly set: (state: PluginState) => void
  }
>()("tollkeeper/kernel/PluginStates") {
  static readonly layer = Layer.sync(PluginStates, () => {
    const states = new Map<string, PluginState>()
    return PluginStates.of({
      all: () => [...states.values()],
      set: (state) => {
        states.set(state.id, state.detail === undefined ? state : { ...state, detail: state.detail.slice(0, 200) })
      }
    })
  })
}
