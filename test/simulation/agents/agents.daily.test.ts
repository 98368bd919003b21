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

it("pays once per call, delivers it and ends every hold despite crashes [S211, S212]", () => {
  const seen = new Set<string>()
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
