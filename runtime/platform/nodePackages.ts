// The installed packages as Node and Deno find them, both by the folders called `node_modules`.
import { Effect, Layer } from "effect"
import { Packages } from "../../kernel/platform/Packages.ts"
import { packageFile } from "../layout.ts"

export const layer = Layer.succeed(Packages, Packages.of({ file: (path) => Effect.sync(() => packageFile(path)) }))
