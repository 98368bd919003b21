// A contract names the services that one plugin or driver provides to others: an id and the service keys behind it. It
// is a value, so that the loader sees at run time the same needs that the types see. A plugin declares the contracts it
// needs; the plugin with the contract's id must provide its services. A contract is defined in a plugin's `contract.ts`
// or next to a kernel service.
import { Context } from "effect"

export interface Contract<out Id extends string, out Services> {
  readonly id: Id
  readonly keys: ReadonlyArray<Context.Key<Services, any>>
}

export type AnyContract = Contract<string, any>

export type ServicesOf<C> = C extends Contract<string, infer Services> ? Services : never

type IdentifierOf<Key> = Key extends Context.Key<infer Identifier, any> ? Identifier : never

/** Names the services that the plugin or driver `id` provides. */
export const contract = <const Id extends string, const Keys extends ReadonlyArray<Context.Key<any, any>>>(
  id: Id,
  ...keys: Keys
): Contract<Id, IdentifierOf<Keys[number]>> => ({ id, keys })

/** The plugin or driver that is building its Layer; "kernel" otherwise. It names owners in registries and logs. */
export const CurrentPlugin = Context.Reference<string>("tollkeeper/kernel/CurrentPlugin", {
  defaultValue: () => "kernel"
})
