// TypeScript made JavaScript by stripping its types, as the platform itself does with every source of this program. It
// is for modules that run in a browser and are therefore served as text. Syntax that cannot be stripped (enums,
// namespaces) throws; this program has none.
import { Context } from "effect"

export class StripTypes extends Context.Service<
  StripTypes,
  {
    /** The same source without types; each line stays where it is. Throws on one that needs more than stripping. */
    readonly strip: (source: string) => string
  }
>()("tollkeeper/platform/StripTypes") {}
