// A sample of the seeds of `npm run simulate -- --agents`, with a check of its coverage.
import { expect, it } from "vitest"
import { simulateAgents } from "./simulateAgents.ts"

/** Events that a meaningful sample covers. */
const mustSee = [
  "answered",
  "agent hung up",
  "host lost",
  "acknowledged",
  "state acknowledged",
  "crash after keep payment",
  "crash after move to signed",
  "crash before send payment",
  "crash at answer",
  "process stalled",
  "state spent",
  "state released",
  "error SETTLEMENT_UNKNOWN",
  "error BUDGET_EXCEEDED"
]

/** A reading from before a payment was signed once released it, or proved it paid. */
const once = [365, 2_334, 2_362]

it("pays once per call, delivers it and ends every hold despite crashes [S211, S212]", () => {
  const seen = new Set<string>()
  for (const seed of once) expect([seed, simulateAgents(seed).violations]).toEqual([seed, []])
  for (let seed = 1; seed <= 20 || (seed <= 90 && mustSee.some((what) => !seen.has(what))); seed++) {
    const { counts, violations } = simulateAgents(seed)
    expect([seed, violations]).toEqual([seed, []])
    for (const what of counts.keys()) seen.add(what)
  }
  expect(mustSee.filter((what) => !seen.has(what))).toEqual([])
}, 240_000)

it("replays a seed of agents exactly", () => {
  expect([...simulateAgents(7).counts]).toEqual([...simulateAgents(7).counts])
})
