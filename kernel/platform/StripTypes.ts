// TypeScript made JavaScript by taking its types away, as the platform itself does with every source of the house. It
// is for modules that run elsewhere, in a browser, and are therefore served as text. What cannot be stripped (enums,
// namespaces) throws; the house has none.
import { Context } from "effect"

export class StripTypes extends Context.Service<
  StripTypes,
  {
    /** The same source without types; each line stays where it is. Throws on one that needs more than stripping. */
    readonly strip: (source: string) => string
  }
>()("tollkeeper/platform/StripTypes") {}
