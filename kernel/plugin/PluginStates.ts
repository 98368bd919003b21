// The state of each enabled plugin, for readiness and the operator: `running`, or `degraded` with one bounded sentence.
// The loader writes it while plugins start; anyone may read it.
import { Context, Layer } from "effect"

interface PluginState {
  readonly id: string
  readonly state: "running" | "degraded"
  /** The reason for a degraded state, at most 200 characters; absent while it runs. */
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
