// A sample of the simulation's seeds in the daily suite, and that a seed says everything about its run.
import { expect, it } from "vitest"
import { Coverage } from "./Coverage.ts"
import * as Liveness from "./liveness.ts"
import { faultsMin, paymentsMin, simulate } from "./simulate.ts"

it("keeps every invariant over 60 seeds, and until coverage is complete [S89, S91, S94, S96, S340, S341]", () => {
  const seen = new Coverage()
  let liveness = Liveness.none
  // A rare event is seen in one seed of fifty: a sample without it continues.
  for (let seed = 1; seed <= 60 || (seed <= 240 && seen.missing(1).length > 0); seed++) {
    const report = simulate(seed)
    seen.add(report.coverage)
    liveness = Liveness.sum(liveness, report.liveness)
    expect([seed, report.violations]).toEqual([seed, []])
    expect(report.payments).toBeGreaterThanOrEqual(paymentsMin)
    expect(report.faults).toBeGreaterThanOrEqual(faultsMin)
  }
  // A simulation in which nothing happens breaks nothing.
  expect(seen.missing(1)).toEqual([])
  // One that lets everything expire breaks nothing either.
  expect(Liveness.tooFew(liveness)).toEqual([])
}, 240_000)

it("replays a seed exactly", () => {
  expect([...simulate(7).coverage]).toEqual([...simulate(7).coverage])
})
