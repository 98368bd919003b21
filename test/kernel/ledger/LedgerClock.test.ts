// The ledger's pace, measured by looks that saw news: steady, jittered, interrupted, and not measured yet.
import { expect, it } from "@effect/vitest"
import { paceOf } from "../../../kernel/ledger/LedgerClock.ts"

const steady = (millis: number, count = 20) => Array.from({ length: count }, () => ({ ledgers: 1, millis }))

it("takes the shortest pace a client may assume until it has seen three looks", () => {
  expect(paceOf([])).toBe(1)
  expect(paceOf(steady(5_000, 2))).toBe(1)
  expect(paceOf(steady(5_000, 3))).toBe(5)
})

it("measures a steady pace exactly, and a jittered one within two hundredths", () => {
  expect(paceOf(steady(5_000))).toBe(5)
  const jittered = [750, 1_000, 1_250, 1_000, 1_250, 750].flatMap((millis) => [{ ledgers: 1, millis }, { ledgers: 1, millis: 2_000 - millis }])
  expect(Math.abs(paceOf(jittered) - 1)).toBeLessThan(0.02)
})

it("is not moved by a burst of ledgers in one look", () => {
  expect(paceOf([...steady(1_000, 17), { ledgers: 20, millis: 200 }, { ledgers: 8, millis: 200 }])).toBe(1)
})

it("is not moved by an endpoint that was away", () => {
  expect(paceOf([...steady(1_000, 18), { ledgers: 1, millis: 600_000 }])).toBe(1)
})

it("stays within 0.1 and 60 seconds", () => {
  expect(paceOf(steady(1))).toBe(0.1)
  expect(paceOf(steady(3_600_000))).toBe(60)
})
