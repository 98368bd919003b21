// The plugin that is starting: its registrations and logs carry it as their owner.
import { Context } from "effect"

/** The plugin or driver that is building its Layer; "kernel" otherwise. It names owners in registries and logs. */
export const CurrentPlugin = Context.Reference<string>("tollkeeper/kernel/CurrentPlugin", {
  defaultValue: () => "kernel"
})
