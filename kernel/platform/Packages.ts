// Files of installed npm packages, for assets served to browsers unchanged. The platform knows where npm has installed
// a package: beside the program, or further up.
import { Context, type Effect } from "effect"

export class Packages extends Context.Service<
  Packages,
  {
    /** Absolute path of a package's file (`preact/dist/preact.mjs`); one that is not installed is a defect. */
    readonly file: (path: string) => Effect.Effect<string>
  }
>()("tollkeeper/platform/Packages") {}
