// The heap of a small program while it starts, on Node: loading some hundred modules makes V8 take three times what
// stays in use. While modules load it grows no further than it must; afterwards it grows as ever, so that nothing is
// slower. Elsewhere than on Node neither does anything.
import { setFlagsFromString } from "node:v8"

const isNode = !("Deno" in globalThis)

/** Before anything is loaded. */
export const growSlowly = (): void => {
  if (isNode) setFlagsFromString("--optimize-for-size")
}

/** Before anything large is read, and when everything is there. */
export const growFreely = (): void => {
  if (isNode) setFlagsFromString("--no-optimize-for-size")
}
