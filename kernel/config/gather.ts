// The settings that the plugins and drivers of a program declare, enabled or not: a misspelt section is refused
// whatever is enabled, `tollkeeper config schema` prints every setting without starting anything, and a plugin that is
// off says what speaks against pubnet like one that is on. A section, or a key of the networks, that two declare is a
// mistake of the program.
import { networksSection } from "./Network.ts"
import type { Declaration, Declared, NetworkKeys } from "./NetworkKeys.ts"
import type { Section } from "./Setting.ts"

/** Gathers what the plugins of a program declare. */
export const gather = (
  plugins: ReadonlyArray<{ readonly id: string; readonly settings?: ReadonlyArray<Declaration> }>
): Declared => {
  const sections = new Map<string, Section<unknown>>()
  const networkKeys: Array<NetworkKeys<unknown>> = []
  for (const { id, settings = [] } of plugins) {
    for (const one of settings) {
      if ("fields" in one) networkKeys.push(one)
      else if (sections.has(one.name)) throw new Error(`section ${one.name}: declared twice, last by ${id}`)
      else sections.set(one.name, one)
    }
  }
  const networks = networksSection(networkKeys)
  return { sections: sections.set(networks.name, networks), networkKeys }
}
