// Who is there now, in the order in which they came.
import { describe, expect, it } from "@effect/vitest"
import { Present } from "../../kernel/Present.ts"

describe("who is present", () => {
  it("stands in the order of coming, whoever of them leaves", () => {
    const present = new Present<number>()
    expect([present.isEmpty, present.first, present.all()]).toEqual([true, undefined, []])
    const places = [1, 2, 3, 4].map((one) => present.enter(one))
    expect(present.all()).toEqual([1, 2, 3, 4])
    for (const [left, others] of [
      [1, [1, 3, 4]],
      [0, [3, 4]],
      [3, [3]],
      [2, []]
    ] as const) {
      expect(present.leave(places[left]!)).toBe(true)
      expect(present.all()).toEqual(others)
      expect([present.isEmpty, present.first]).toEqual([others.length === 0, others[0]])
    }
    present.enter(5)
    expect(present.all()).toEqual([5])
  })

  it("leaves once", () => {
    const present = new Present<number>()
    const [first] = [present.enter(1), present.enter(2)]
    expect([present.leave(first), present.leave(first)]).toEqual([true, false])
    expect(present.all()).toEqual([2])
  })

  it("leads nobody who left to those who came after", () => {
    const present = new Present<number>()
    const places = [present.enter(1), present.enter(2), present.enter(3)]
    // The one between two others knew both.
    for (const place of [places[1]!, places[0]!, places[2]!]) {
      present.leave(place)
      expect([place.before, place.after]).toEqual([undefined, undefined])
    }
  })
})
