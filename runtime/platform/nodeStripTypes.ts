// Type stripping by `node:module`, which Node (22.13 and later) and Deno both have: the same that runs our own sources.
import { Layer } from "effect"
import { stripTypeScriptTypes } from "node:module"
import { StripTypes } from "../../kernel/platform/StripTypes.ts"

export const layer = Layer.succeed(StripTypes, StripTypes.of({ strip: (source) => stripTypeScriptTypes(source) }))
