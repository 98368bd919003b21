// The installed packages on Node and Deno, found through `node_modules` folders.
import { Effect, Layer } from "effect"
import { Packages } from "../../kernel/platform/Packages.ts"
import { packageFile } from "../layout.ts"

export const layer = Layer.succeed(Packages, Packages.of({ file: (path) => Effect.sync(() => packageFile(path)) }))
