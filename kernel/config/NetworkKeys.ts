// Settings of a network that belong to a plugin of the program, such as the contract of a scheme: they stand beside the
// kernel's own in each entry of `networks`, whether the plugin is enabled or not, so that a profile reads the same with
// and without it. With them a plugin says what must hold before they may serve pubnet. It declares them in its
// `settings` (`gather.ts`).
import type { Fields, Section, ValuesOf } from "./Setting.ts"

export interface NetworkKeys<out A> {
  /** The plugin's id. */
  readonly owner: string
  readonly fields: Fields
  /** What keeps a network with these values from serving pubnet, as a sentence. */
  readonly pubnetIssue: (values: any) => string | undefined
  readonly values?: A
}

/** What a plugin declares: sections, and keys of each network. */
export type Declaration = Section<any> | NetworkKeys<any>

/** What all the plugins of a program declare (`gather.ts`). */
export interface Declared {
  /** By name, `networks` with every contributed key in it. */
  readonly sections: ReadonlyMap<string, Section<unknown>>
  readonly networkKeys: ReadonlyArray<NetworkKeys<unknown>>
}

/** Defines keys; they are known once the plugin declares them. */
export const networkKeys = <F extends Fields>(
  owner: string,
  fields: F,
  pubnetIssue: (values: ValuesOf<F>) => string | undefined = () => undefined
): NetworkKeys<ValuesOf<F>> => ({ owner, fields, pubnetIssue: pubnetIssue })
