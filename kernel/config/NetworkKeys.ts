// Network settings that a plugin of the program declares, such as a scheme's contract address: they are members of each
// entry of `networks` beside the kernel's own, whether the plugin is enabled or not, so a profile parses the same with
// and without it. A plugin declares them in its `settings` (`gather.ts`), with the conditions they must meet on pubnet.
import type { Fields, Section, ValuesOf } from "./Setting.ts"

/** Most of a transaction's costs, in stroops. */
export interface FeeCeilings {
  readonly resourceStroopsMax: bigint
  readonly inclusionStroopsMax: bigint
  readonly totalStroopsMax: bigint
}

export interface NetworkKeys<out A> {
  /** The plugin's id. */
  readonly owner: string
  readonly fields: Fields
  /** What keeps a network with these values from serving pubnet, as a sentence. */
  readonly pubnetIssue: (values: any) => string | undefined
  /** Ceilings of the plugin's schemes, by scheme, where the settings (`fees.<scheme>`) name none. */
  readonly feeCeilings?: Readonly<Record<string, FeeCeilings>> | undefined
  readonly values?: A
}

/** What a plugin declares: sections, and keys of each network. */
export type Declaration = Section<any> | NetworkKeys<any>

/** The declarations of all plugins of a program (`gather.ts`). */
export interface Declared {
  /** By name, `networks` with every contributed key in it. */
  readonly sections: ReadonlyMap<string, Section<unknown>>
  readonly networkKeys: ReadonlyArray<NetworkKeys<unknown>>
}

/** Defines keys; they are known once the plugin declares them. */
export const networkKeys = <F extends Fields>(
  owner: string,
  fields: F,
  pubnetIssue: (values: ValuesOf<F>) => string | undefined = () => undefined,
  feeCeilings?: NetworkKeys<unknown>["feeCeilings"]
): NetworkKeys<ValuesOf<F>> => ({ owner, fields, pubnetIssue, feeCeilings })
