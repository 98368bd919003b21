// Data that is stored with an object.
import { describe, expect, it } from "@effect/vitest"
import { objectSlot } from "../../../kernel/cache/objectSlot.ts"

describe("an object slot", () => {
  it("a slot's value belongs to one object and one slot", () => {
    const [sizes, names] = [objectSlot<object, number>(), objectSlot<object, string>()]
    const [one, other] = [{}, {}]
    sizes.set(one, 7)
    names.set(one, "seven")
    expect([sizes.get(one), names.get(one)]).toEqual([7, "seven"])
    expect([sizes.get(other), names.get(other)]).toEqual([undefined, undefined])
  })

  it("a slot is not an enumerable property", () => {
    const notes = objectSlot<object, number>()
    const one = { a: 1 }
    notes.set(one, 7)
    expect(one).toStrictEqual({ a: 1 })
    expect([Reflect.ownKeys(one), JSON.stringify(one), notes.get({ ...one })]).toEqual([["a"], '{"a":1}', undefined])
  })

  it("a slot is written once", () => {
    const notes = objectSlot<object, number>()
    const one = {}
    notes.set(one, 7)
    expect(() => notes.set(one, 8)).toThrow(TypeError)
    expect(notes.get(one)).toBe(7)
  })
})
