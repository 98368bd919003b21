// The batch of sightings: only past times, one row for equal observations of a day, and bounds.
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { expect, it } from "vitest"
import { type ObservedDeclaration, SightingsBatch } from "../../../plugins/catalog/store/SightingsBatch.ts"

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

const sha256 = (bytes: Uint8Array) => new Uint8Array(createHash("sha256").update(bytes).digest())
const makeBatch = () => new SightingsBatch({ sha256 } as never)

const seen: ObservedDeclaration = {
  resourceKey: "key",
  resourceId: 1n,
  url: "https://shop.example.com/",
  type: "http",
  toolName: "tool",
  payTo: "GSELLER",
  payer: "GPAYER",
  stage: "verified",
  decision: "listed",
  reason: "payto_conflict",
  detail: "a detail",
  at: new Date(1_000),
  lagMillis: 1
}

it("observations of a day that differ only in time share a row", () => {
  const sightings = makeBatch()
  const observe = (changes: Partial<ObservedDeclaration> = {}) =>
    Effect.runSync(sightings.observe({ ...seen, ...changes }))
  observe()
  observe({ at: new Date(2_000), payer: "GOTHER", lagMillis: 7 })
  const differing: ReadonlyArray<Partial<ObservedDeclaration>> = [
    { at: new Date(86_400_000) },
    { url: "https://shop.example.com/else" },
    { type: undefined },
    { toolName: undefined },
    { payTo: "GOTHER" },
    { stage: "settled" },
    { decision: "held" },
    { reason: undefined },
    { detail: undefined },
    { resourceId: undefined },
    { type: "mcp" },
    { toolName: "other" },
    { reason: "catalog_unavailable" },
    { detail: "another detail" },
    { resourceId: 2n }
  ]
  for (const changes of differing) observe(changes)
  const [first, ...others] = sightings.take(new Date(9e12))!.observations.values()
  expect(first).toMatchObject({ times: 2, firstAt: new Date(1_000), at: new Date(2_000) })
  expect(others.map(({ times }) => times)).toEqual(differing.map(() => 1))
  expect(sightings.take(new Date(9e12))).toBeUndefined()
})

it("entries that could not be stored join the next batch", () => {
  const sightings = makeBatch()
  const sale = { transaction: "t", payer: "p", payTo: "s", amount: "1" }
  const fill = (at: number) => {
    Effect.runSync(sightings.touch(1n, new Date(at), sale))
    Effect.runSync(sightings.contend(2n, new Date(at), { ...sale, transaction: "u" }))
    Effect.runSync(sightings.observe({ ...seen, at: new Date(at) }))
  }
  fill(2_000)
  const lost = sightings.take(new Date(9_000))!
  expect(sightings.isPressing).toBe(false)
  sightings.see(1n, new Date(1_000))
  expect(sightings.isPressing).toBe(false)
  fill(3_000)
  sightings.putBack(lost)
  const { observations, sales, touches } = sightings.take(new Date(9_000))!
  expect([...touches]).toEqual([[1n, { observed: 3, lastSeenAt: new Date(3_000) }]])
  expect([...sales.values()].map(({ isContested, resourceId }) => [resourceId, isContested])).toEqual([
    [1n, undefined],
    [2n, true]
  ])
  expect([...observations.values()].map(({ times }) => times)).toEqual([2])
})

it("a payer makes at most 2,000 rows of observations a day", () => {
  const sightings = makeBatch()
  const count = (payer: string, day: number) => {
    Effect.runSync(sightings.observe({ ...seen, payer, at: new Date(day * 86_400_000) }))
    return sightings.take(new Date(9e12))?.observations.size ?? 0
  }
  expect(count("GPAYER", 1)).toBe(1)
  for (let row = 0; row < 1_999; row++) sightings.countRow("GPAYER")
  expect(count("GPAYER", 1)).toBe(1)
  sightings.countRow("GPAYER")
  expect([count("GPAYER", 1), count("GOTHER", 1), count("GPAYER", 2)]).toEqual([0, 1, 1])
})
