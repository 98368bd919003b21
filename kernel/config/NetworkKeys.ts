// Network settings that a plugin of the program declares, such as a scheme's contract address. They are members of each
// entry of `networks`, next to the kernel's, whether the plugin is enabled or not. So a profile parses the same with
// and without the plugin. A plugin declares them in its `settings` (`gather.ts`), with the conditions they must meet on
// pubnet.
import type { Fields, Section, ValuesOf } from "./Setting.ts"

/** Maximum costs of a transaction, stroops. */
export interface FeeCeilings {
  readonly resourceStroopsMax: bigint
  readonly inclusionStroopsMax: bigint
  readonly totalStroopsMax: bigint
}

export interface NetworkKeys<out A> {
  readonly owner: string
  readonly fields: Fields
  /** The reason why a network with these values cannot serve pubnet, as a sentence. */
  readonly pubnetIssue: (values: any) => string | undefined
  /** Default ceilings of the plugin's schemes, by scheme; the settings (`fees.<scheme>`) override them. */
  readonly feeCeilings?: Readonly<Record<string, FeeCeilings>> | undefined
  readonly values?: A
}

/** A plugin's declaration: sections, and keys of each network. */
export type Declaration = Section<any> | NetworkKeys<any>

/** The declarations of all plugins of a program (`gather.ts`). */
export interface Declarations {
  /** By name, `networks` with every contributed key in it. */
  readonly sections: ReadonlyMap<string, Section<unknown>>
  readonly networkKeys: ReadonlyArray<NetworkKeys<unknown>>
  /** A plugin could not be loaded. An unknown section may belong to it. */
  readonly isPartial?: boolean
}

/** Defines keys; they take effect once the plugin declares them. */
export const networkKeys = <F extends Fields>(
  owner: string,
  fields: F,
  pubnetIssue: (values: ValuesOf<F>) => string | undefined = () => undefined,
  feeCeilings?: NetworkKeys<unknown>["feeCeilings"]
): NetworkKeys<ValuesOf<F>> => ({ owner, fields, pubnetIssue, feeCeilings })
