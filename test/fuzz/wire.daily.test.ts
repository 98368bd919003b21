// A sample of `npm run fuzz`: readers of strangers' bytes refuse or read, and HTTP answers keep the payment's shape.
import { expect, it } from "vitest"
import { fuzzHttp } from "./httpTargets.ts"
import { fuzzWire } from "./WireFuzz.ts"

it("reads or refuses mutated bytes, some of each kind successfully", async () => {
  const { breaches, read } = await fuzzWire(6_000, 1)
  expect(breaches).toEqual([])
  for (const [name, count] of read)
    if (!/receipts|checkpoints|proofs/.test(name)) expect(count, name).toBeGreaterThan(0)
}, 120_000)

it("answers mutated requests in the payment's shape, without status 5xx", async () => {
  const { breaches, statuses } = await fuzzHttp(300, 1)
  expect(breaches).toEqual([])
  for (const status of [200, 400]) expect(statuses.get(status) ?? 0, `${status}`).toBeGreaterThan(0)
}, 240_000)
