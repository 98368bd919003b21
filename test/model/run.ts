// `npm run model`: every state that the settlement code can reach in small worlds, each once; their number, that of
// the transitions, and a shortest history for any invariant that does not hold. `--defect NAME` puts a defect into the
// deciding code, which must be found; `--defect all` tries each. Exit code 1 when the sound code breaks an invariant,
// or a defect is not found.
import process from "node:process"
import { parseArgs } from "node:util"
import { explore } from "./explore.ts"
import type { Product } from "./model.ts"
import { defects, sound, worlds } from "./worlds.ts"

const { values } = parseArgs({
  options: { defect: { type: "string" }, small: { type: "boolean", default: false } }
})

/** The number of broken worlds, printing what was seen. */
const exploreAll = (product: Product, isSmall: boolean): number => {
  let broken = 0
  for (const { bounds, name, small } of worlds) {
    const found = explore(isSmall ? small : bounds, product)
    console.log(`  ${name}: ${found.states} states, ${found.transitions} transitions`)
    if (found.broken === undefined) continue
    broken += 1
    console.log(`  broken: ${found.broken.what}`)
    for (const step of found.broken.history) console.log(`    ${step}`)
  }
  return broken
}

const startedAt = performance.now()
const { defect } = values
if (defect === undefined) {
  console.log("the settlement code, explored whole:")
  process.exitCode = exploreAll(sound, values.small) === 0 ? 0 : 1
} else {
  const names = defect === "all" ? Object.keys(defects) : [defect]
  for (const name of names) {
    const product = defects[name]
    if (product === undefined) throw new Error(`no such defect; there are ${Object.keys(defects).join(", ")}`)
    console.log(`${name}:`)
    const isFound = exploreAll(product, true) > 0
    console.log(isFound ? "  found" : "  NOT FOUND")
    if (!isFound) process.exitCode = 1
  }
}
console.log(`${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)
