import { expect, it } from "vitest"
import { AdmissionControl } from "../../../../kernel/settlement/channels/AdmissionControl.ts"
import { ReleaseRateEstimator } from "../../../../kernel/settlement/channels/ReleaseRateEstimator.ts"

const conditions = { now: 0, ledgerMillis: 5_000, channels: 3_000 }

it("admits again after any number of released places", () => {
  const admission = new AdmissionControl(new ReleaseRateEstimator())
  for (let round = 0; round < 2_500; round++) {
    expect(admission.enter("one", 8_000, conditions)).toBeUndefined()
    if (round % 2 === 0) expect(admission.enter("one", 8_000, conditions)).toBeUndefined()
    if (round % 2 === 0) admission.leave("one")
    admission.leave("one")
    // Extra calls of `leave` change nothing.
    admission.leave("one")
  }
  expect(admission.places.size).toBe(0)
})

it("refuses beyond 250 places per principal and 2,000 in total", () => {
  const admission = new AdmissionControl(new ReleaseRateEstimator())
  const entered = (principal: string) => {
    let places = 0
    while (places < 300 && admission.enter(principal, 8_000, conditions) === undefined) places += 1
    return places
  }
  expect(Array.from({ length: 9 }, (_, at) => entered(`principal ${at}`))).toEqual([...Array(8).fill(250), 0])
  admission.leave("principal 0")
  expect(entered("another")).toBe(1)
})
