// Loads an optional plugin. If its module cannot be loaded, for example because of a wrong import, standard error names
// it, and the rest of the program works without it: an enabled plugin is reported degraded.
import { Effect, Layer } from "effect"
import process from "node:process"
import { type AnyPlugin, define } from "../kernel/plugin/Plugin.ts"

const faultOf = (error: unknown): string => String(error instanceof Error ? error.message : error).split("\n", 1)[0]!

export const loadPlugin = async <P extends AnyPlugin>(
  id: P["id"],
  load: () => Promise<{ readonly plugin: P }>
): Promise<P> => {
  try {
    return (await load()).plugin
  } catch (error) {
    const fault = `the plugin ${id} cannot be loaded: ${faultOf(error)}`
    process.stderr.write(`tollkeeper: ${fault}; it is left out\n`)
    const missing: AnyPlugin = {
      ...define({
        id,
        summary: "Cannot be loaded.",
        boot: "optional",
        needs: [],
        migrations: "none",
        layer: Layer.effectDiscard(Effect.fail(new Error(fault)))
      }),
      isMissing: true
    }
    return missing as P
  }
}
