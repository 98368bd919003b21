// Files of the packages that are installed for this program, for what is served to browsers as it stands in a package.
// Where npm has put a package is the platform's to know: beside the program, or further up.
import { Context, type Effect } from "effect"

export class Packages extends Context.Service<
  Packages,
  {
    /** Absolute path of a package's file (`preact/dist/preact.mjs`); one that is not installed is a defect. */
    readonly file: (path: string) => Effect.Effect<string>
  }
>()("tollkeeper/platform/Packages") {}
