// `npm run model`: visits every state that the settlement code can reach in small worlds, once each. It prints their
// number, the number of transitions, and a shortest history for any broken invariant. `--defect NAME` puts a defect
// into the deciding code, which must be found; `--defect all` tries each. Exit code 1 if the sound code breaks an
// invariant, or a defect is not found. Without a defect it also explores the delivery of a success, and prints the
// words of each route, event and webhook for each state and caller (`--words` prints only them).
import process from "node:process"
import { parseArgs } from "node:util"
import { exploreDelivery } from "./delivery.ts"
import { explore } from "./explore.ts"
import type { Product } from "./model.ts"
import { printWords, wordTable } from "./words.ts"
import { defects, sound, worlds } from "./worlds.ts"

const { values } = parseArgs({
  options: {
    defect: { type: "string" },
    small: { type: "boolean", default: false },
    words: { type: "boolean", default: false }
  }
})

/** Prints the results; returns the number of worlds with a broken invariant. */
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

/** Explores the delivery of a success and the words of each state; true if all invariants hold. */
const deliveryHolds = (): boolean => {
  const { broken, states } = exploreDelivery()
  console.log(`  the delivery of a success: ${states} states`)
  if (broken !== undefined) for (const line of ["broken:", ...broken]) console.log(`    ${line}`)
  const rows = wordTable()
  console.log(printWords(rows))
  const untrue = rows.filter(({ issue }) => issue !== undefined)
  for (const { caller, issue, state } of untrue) console.log(`  untrue: ${state}, ${caller}: ${issue}`)
  return broken === undefined && untrue.length === 0
}

const startedAt = performance.now()
const { defect } = values
if (defect === undefined) {
  console.log("the settlement code, explored whole:")
  const isSound = values.words || exploreAll(sound, values.small) === 0
  process.exitCode = deliveryHolds() && isSound ? 0 : 1
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
