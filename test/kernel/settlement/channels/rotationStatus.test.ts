// Where a replica's keys are in the chain of rotations: at its end, behind it, or ahead of it without a record.
import { expect, it } from "vitest"
import {
  isChange,
  newestOf,
  type Rotation,
  type RotationStatusInput,
  rotationStatus,
  type SigningKeys,
  takesUp,
  unrecordedFrom
} from "../../../../kernel/settlement/channels/rotationStatus.ts"

const rotation = (generation: number, from: string, to: string, more: Partial<Rotation> = {}): Rotation => ({
  generation,
  kind: "sponsor",
  from,
  to,
  state: "done",
  ...more
})
/** Sponsors a → b → c, channels 1 → 2. */
const rotations = [
  rotation(3, "1", "2", { kind: "channels", state: "taken" }),
  rotation(2, "b", "c", { state: "taken" }),
  rotation(1, "a", "b")
]
const keys = (sponsor: string, channels: string): SigningKeys => ({ sponsor, channels })
const newest = keys("c", "2")

const inputOf = (own: SigningKeys, changes: Partial<RotationStatusInput> = {}): RotationStatusInput => ({
  rotations,
  names: { formerSponsors: [] } as unknown as RotationStatusInput["names"],
  keys: own,
  taken: undefined,
  live: [],
  ...changes
})

it("the newest keys are at the end of their chain and kind", () => {
  expect(["a", "b", "c", "x", "1"].map((one) => newestOf(rotations, "sponsor", one))).toEqual(["c", "c", "c", "x", "1"])
  expect(newestOf(rotations, "channels", "1")).toBe("2")
  // A cycle, which no journal has, ends as well.
  expect(newestOf([rotation(1, "a", "b"), rotation(2, "b", "a")], "sponsor", "a")).toBe("a")
})

it("a replica takes up later keys of its chain, channels under the same sponsor", () => {
  const takes = (before: SigningKeys, next: SigningKeys) => takesUp(rotations, before, next)
  expect(takes(keys("a", "1"), keys("b", "1"))).toBe(true)
  expect(takes(keys("a", "1"), keys("c", "9"))).toBe(true)
  expect(takes(keys("c", "1"), newest)).toBe(true)
  expect(takes(keys("b", "1"), keys("a", "1"))).toBe(false)
  expect(takes(keys("a", "1"), keys("a", "1"))).toBe(false)
  expect(takes(keys("a", "1"), keys("x", "2"))).toBe(false)
  expect(takes(keys("c", "2"), keys("c", "1"))).toBe(false)
})

it("derived channels change with their sponsor, without a rotation", () => {
  const change = (from: SigningKeys, to: SigningKeys) =>
    (["sponsor", "channels"] as const).map((kind) => isChange(kind, { from, to }))
  expect(change(keys("a", "derived a"), keys("b", "derived b"))).toEqual([true, false])
  expect(change(keys("a", "derived a"), keys("a", "2"))).toEqual([false, true])
  expect(change(keys("a", "1"), keys("a", "derived a"))).toEqual([false, true])
  expect(change(keys("a", "1"), keys("a", "1"))).toEqual([false, false])
})

it.each([
  ["the newest keys", newest, { state: "current", generation: 3, progress: "taken", detail: undefined }],
  ["keys without a rotation", keys("x", "9"), { state: "current", generation: 0, progress: undefined }],
  ["a former sponsor", keys("b", "2"), { state: "behind", detail: expect.stringMatching(/as b, replaced by c/) }],
  ["former channels", keys("c", "1"), { state: "behind", generation: 2, detail: expect.stringMatching(/on channels/) }]
] as const)("the state of %s", (_, own, expected) => {
  expect(rotationStatus(inputOf(own))).toMatchObject({ ...expected, replicasBehind: 0 })
})

it("counts live replicas of the own chains that sign with replaced keys", () => {
  const status = (live: ReadonlyArray<SigningKeys>) => rotationStatus(inputOf(newest, { live }))
  expect(status([newest, keys("x", "9")])).toMatchObject({ replicasBehind: 0, detail: undefined })
  expect(status([keys("a", "2"), keys("c", "1"), newest])).toMatchObject({
    replicasBehind: 2,
    detail: "2 live replicas sign with replaced keys"
  })
  // Another installation's replicas over the same database.
  const others = [...rotations, rotation(4, "x", "y")]
  expect(rotationStatus(inputOf(newest, { rotations: others, live: [keys("x", "9")] })).replicasBehind).toBe(0)
})

it("keys that a lost rotation led to are ahead, and name what they follow", () => {
  const taken = { from: newest, to: keys("d", "2") }
  const ahead = inputOf(keys("d", "2"), { taken })
  expect([unrecordedFrom(ahead), rotationStatus(ahead).state]).toEqual([newest, "ahead"])
  const both = inputOf(keys("d", "3"), { taken: { from: newest, to: keys("d", "3") } })
  expect(unrecordedFrom(both)).toEqual(newest)
  const recorded = { rotations: [...rotations, rotation(4, "c", "d")], taken }
  expect(unrecordedFrom(inputOf(keys("d", "2"), recorded))).toBeUndefined()
  expect(unrecordedFrom(inputOf(keys("e", "2"), { taken }))).toBeUndefined()
  expect(unrecordedFrom(inputOf(keys("b", "2"), { taken }))).toBeUndefined()
})

it("a restart's new sponsor follows the former one in its sources", () => {
  const restarted = (formerSponsors: ReadonlyArray<string>, own = keys("d", "2")) =>
    unrecordedFrom(inputOf(own, { names: { formerSponsors } as never }))
  expect(restarted(["c"])).toEqual(newest)
  // Not the end of a chain, not of a rotation, and no new sponsor.
  expect([restarted(["b"]), restarted(["x"]), restarted([]), restarted(["c"], newest)]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined
  ])
})
