// A doubly linked list in insertion order.
import { describe, expect, it } from "@effect/vitest"
import { LinkedList } from "../../../kernel/effect/LinkedList.ts"

describe("a linked list", () => {
  it("keeps insertion order after any removal", () => {
    const present = new LinkedList<number>()
    expect([present.isEmpty, present.first, present.toArray()]).toEqual([true, undefined, []])
    const places = [1, 2, 3, 4].map((one) => present.append(one))
    expect(present.toArray()).toEqual([1, 2, 3, 4])
    for (const [left, others] of [
      [1, [1, 3, 4]],
      [0, [3, 4]],
      [3, [3]],
      [2, []]
    ] as const) {
      expect(present.remove(places[left]!)).toBe(true)
      expect(present.toArray()).toEqual(others)
      expect([present.isEmpty, present.first]).toEqual([others.length === 0, others[0]])
    }
    present.append(5)
    expect(present.toArray()).toEqual([5])
  })

  it("removes a node once", () => {
    const present = new LinkedList<number>()
    const [first] = [present.append(1), present.append(2)]
    expect([present.remove(first), present.remove(first)]).toEqual([true, false])
    expect(present.toArray()).toEqual([2])
  })

  it("does not retain removed nodes", () => {
    const present = new LinkedList<number>()
    const places = [present.append(1), present.append(2), present.append(3)]
    // The middle node was linked with both others.
    for (const place of [places[1]!, places[0]!, places[2]!]) {
      present.remove(place)
      expect([place.previous, place.next]).toEqual([undefined, undefined])
    }
  })
})
