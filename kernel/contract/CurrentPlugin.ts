// Which plugin is being started: registries and logs name it as the owner of what it contributes.
import { Context } from "effect"

/** The plugin or driver whose Layer is being built; "kernel" outside of any. It names owners in registries and logs. */
export const CurrentPlugin = Context.Reference<string>("tollkeeper/kernel/CurrentPlugin", {
  defaultValue: () => "kernel"
})
