// The plugin that is starting: registries and logs name it as the owner of its contributions.
import { Context } from "effect"

/** The plugin or driver that is building its Layer; "kernel" otherwise. It names owners in registries and logs. */
export const CurrentPlugin = Context.Reference<string>("tollkeeper/kernel/CurrentPlugin", {
  defaultValue: () => "kernel"
})
