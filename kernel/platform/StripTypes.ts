// Converts TypeScript to JavaScript by stripping its types, as the platform does with all sources of this program. It
// is for modules that run in a browser and are therefore served as text. Syntax that stripping cannot handle (enums,
// namespaces) throws; this program does not use it.
import { Context } from "effect"

export class StripTypes extends Context.Service<
  StripTypes,
  {
    /** The same source without types; line numbers stay the same. Throws if stripping is not enough. */
    readonly strip: (source: string) => string
  }
>()("tollkeeper/platform/StripTypes") {}
