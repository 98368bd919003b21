// Files of installed npm packages, for assets served to browsers unchanged. The platform finds the place where npm
// installed a package: next to the program, or in a parent folder.
import { Context, type Effect } from "effect"

export class Packages extends Context.Service<
  Packages,
  {
    /** Absolute path of a package's file (`preact/dist/preact.mjs`); a missing package is a defect. */
    readonly file: (path: string) => Effect.Effect<string>
  }
>()("tollkeeper/platform/Packages") {}
