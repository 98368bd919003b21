// Sources that are served to browsers: files of installed npm packages, which npm installs next to the program or in a
// parent folder, and our own modules without their types.
import { Context, type Effect } from "effect"

export class Packages extends Context.Service<
  Packages,
  {
    /** Absolute path of a package's file (`preact/dist/preact.mjs`); a missing package is a defect. */
    readonly file: (path: string) => Effect.Effect<string>
  }
>()("tollkeeper/platform/Packages") {}

/**
 * Strips the types of TypeScript, as the platform does with all sources of this program. Syntax that stripping cannot
 * handle (enums, namespaces) throws; this program does not use it.
 */
export class StripTypes extends Context.Service<
  StripTypes,
  {
    /** The same source without types; line numbers stay the same. Throws if stripping is not enough. */
    readonly strip: (source: string) => string
  }
>()("tollkeeper/platform/StripTypes") {}
