// What has gathered is taken with times that have been: a clock that is ahead does not date what it saw.
import { Effect } from "effect"
import { expect, it } from "vitest"
import { SightingsBatch } from "../../../plugins/catalog/store/SightingsBatch.ts"

it("takes nothing as seen or sold later than now", () => {
  const gathered = new SightingsBatch({} as never)
  const [before, now, later] = [new Date(1_000), new Date(2_000), new Date(3_000)]
  const sale = { transaction: "t", payer: "p", payTo: "s", amount: "1" }
  gathered.see(1n, before)
  Effect.runSync(gathered.touch(2n, later, sale))
  const batch = gathered.take(now)!
  expect([batch.touches.get(1n)?.lastSeenAt, batch.touches.get(2n)?.lastSeenAt]).toEqual([before, now])
  expect(batch.sales.get("t")?.at).toEqual(now)
})
