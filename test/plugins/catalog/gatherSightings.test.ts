// Batched sightings are stored only with past times: a clock that is ahead does not date its sightings in the future.
import { Effect } from "effect"
import { expect, it } from "vitest"
import { SightingsBatch } from "../../../plugins/catalog/store/SightingsBatch.ts"

it("sightings and sales are never recorded with a future time", () => {
  const sightings = new SightingsBatch({} as never)
  const [before, now, later] = [new Date(1_000), new Date(2_000), new Date(3_000)]
  const sale = { transaction: "t", payer: "p", payTo: "s", amount: "1" }
  sightings.see(1n, before)
  Effect.runSync(sightings.touch(2n, later, sale))
  const batch = sightings.take(now)!
  expect([batch.touches.get(1n)?.lastSeenAt, batch.touches.get(2n)?.lastSeenAt]).toEqual([before, now])
  expect(batch.sales.get("t")?.at).toEqual(now)
})
