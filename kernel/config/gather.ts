// The settings that the plugins and drivers of a program declare, enabled or not. So a misspelled section is refused
// regardless of the enabled plugins, `tollkeeper config schema` prints every setting without starting anything, and a
// disabled plugin reports its objections to pubnet like an enabled one. A section, or a key of the networks, that is
// declared twice is a programming error.
import { networksSection } from "./Network.ts"
import type { Declaration, Declarations, NetworkKeys } from "./NetworkKeys.ts"
import type { Section } from "./Setting.ts"

export const gather = (
  plugins: ReadonlyArray<{
    readonly id: string
    readonly settings?: ReadonlyArray<Declaration>
    readonly isMissing?: true
  }>
): Declarations => {
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
  const isPartial = plugins.some(({ isMissing }) => isMissing === true)
  return { sections: sections.set(networks.name, networks), networkKeys, isPartial }
}
