// `npm run model`: visits every state that the settlement code can reach in small worlds, once each. It prints their
// number, the number of transitions, and a shortest history for any broken invariant. It also explores the delivery of
// a success and the models of `models.ts`, and prints the words of each route, event and webhook for each state and
// caller (`--words` prints only them). `--defect NAME` puts a defect into the deciding code, which must be found;
// `--defect all` tries each, and takes each rule out of each model. Ends with `N passed, N failed`; the exit code is 1
// if sound code breaks an invariant, or a defect is not found.
import process from "node:process"
import { parseArgs } from "node:util"
import { exploreDelivery } from "./delivery.ts"
import { explore } from "./explore.ts"
import { models } from "./models.ts"
import type { Product } from "./model.ts"
import { printWords, wordTable } from "./words.ts"
import type { Visited } from "./visit.ts"
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

let [passed, failed] = [0, 0]
const count = (holds: boolean): void => {
  if (holds) passed += 1
  else failed += 1
}

const visited = (name: string, { broken, states }: Visited): void => {
  console.log(`  ${name}: ${states} states`)
  if (broken !== undefined) for (const line of ["broken:", ...broken]) console.log(`    ${line}`)
  count(broken === undefined)
}

const showWords = (): void => {
  const rows = wordTable()
  console.log(printWords(rows))
  const untrue = rows.filter(({ issue }) => issue !== undefined)
  for (const { caller, issue, state } of untrue) console.log(`  untrue: ${state}, ${caller}: ${issue}`)
  count(untrue.length === 0)
}

const reportFound = (name: string, isFound: boolean): void => {
  console.log(`${isFound ? "found    " : "NOT FOUND"}  ${name}`)
  count(isFound)
}

const startedAt = performance.now()
const { defect, small, words } = values
if (defect === undefined) {
  if (!words) {
    console.log("the settlement code, explored whole:")
    count(exploreAll(sound, small) === 0)
    visited("the delivery of a success", exploreDelivery())
    for (const { explore, name } of models) visited(name, explore())
  }
  showWords()
} else {
  const isChosen = (name: string) => defect === "all" || defect === name
  for (const [name, product] of Object.entries(defects))
    if (isChosen(name)) reportFound(name, exploreAll(product, true) > 0)
  for (const { explore, name, rules } of models)
    for (const rule of rules.filter(isChosen))
      reportFound(`${name}, without: ${rule}`, explore(rule).broken !== undefined)
}
console.log(`${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 && passed > 0 ? 0 : 1
