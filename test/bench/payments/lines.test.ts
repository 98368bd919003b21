// If a part of the bench fails, the earlier measurements are not lost.
import { expect, it } from "vitest"
import type { Case } from "./figures.ts"
import { printing } from "./lines.ts"

const measuredCase: Case = {
  name: "verify",
  subject: "tollkeeper",
  answers: 100,
  rate: 1_234,
  rates: [1_234],
  millis: { p50: 10, p95: 20, p99: 30 },
  curve: Array.from({ length: 101 }, () => 1),
  cpu: { facilitator: 1, database: null, ledger: 1, clients: 1 },
  cpuRounds: [1],
  outcomes: { "200 valid": 100 }
}

it("prints measured figures when a later part fails", async () => {
  const said: Array<string> = []
  const overflowed = new Error("the open loop overflowed")
  const bench = printing(
    async (measured) => {
      measured.verify = { ours: measuredCase, class: { ...measuredCase, subject: "class" } }
      throw overflowed
    },
    (line) => said.push(line)
  )
  await expect(bench).rejects.toBe(overflowed)
  expect(said).toHaveLength(2)
  expect(said[0]).toMatch(/^ {2}verify, tollkeeper +1234\.0\/s .* 100: 100 200 valid$/)
})
