// The heap of a small program while it starts, on Node: loading some hundred modules makes V8 take three times what
// stays in use, and give it back only minutes later. During the start it grows no further than it must; afterwards it
// grows as ever, so that nothing is slower. Elsewhere than on Node neither does anything.
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

const isNode = !("Deno" in globalThis)

/** Before anything is loaded. */
export const growSlowly = (): void => {
  if (isNode) setFlagsFromString("--optimize-for-size")
}

/** When everything is there: gives back what the start left behind, once. */
export const growFreely = (): void => {
  if (!isNode) return
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as (options: object) => void
  collect({ type: "major", execution: "sync", flavor: "last-resort" })
  setFlagsFromString("--no-expose-gc")
  setFlagsFromString("--no-optimize-for-size")
}
