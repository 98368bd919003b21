// Settings of a network that belong to a plugin of the program, such as the contract of a scheme: they stand beside the
// kernel's own in each entry of `networks`, whether the plugin is enabled or not, so that a profile reads the same with
// and without it. With them a plugin says what must hold before they may serve pubnet.
import type { Fields, ValuesOf } from "./Setting.ts"

export interface NetworkKeys<out A> {
  /** The plugin's id. */
  readonly owner: string
  readonly fields: Fields
  /** What keeps a network with these values from serving pubnet, as a sentence. */
  readonly pubnetFault: (values: any) => string | undefined
  readonly values?: A
}

const contributed = new Map<string, NetworkKeys<unknown>>()

/** Contributes keys. Defined once, beside the plugin's other settings; a key that is taken is a defect. */
export const networkKeys = <F extends Fields>(
  owner: string,
  fields: F,
  pubnetFault: (values: ValuesOf<F>) => string | undefined = () => undefined
): NetworkKeys<ValuesOf<F>> => {
  for (const key of Object.keys(fields)) {
    for (const other of contributed.values())
      if (key in other.fields) throw new Error(`networks.<id>.${key} belongs to ${other.owner}`)
  }
  const keys: NetworkKeys<ValuesOf<F>> = { owner, fields, pubnetFault }
  contributed.set(owner, keys)
  return keys
}

/** Every contribution of this program. */
export const allNetworkKeys = (): ReadonlyArray<NetworkKeys<unknown>> => [...contributed.values()]
