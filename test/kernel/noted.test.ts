// Notes that are kept with an object.
import { describe, expect, it } from "@effect/vitest"
import { noted } from "../../kernel/noted.ts"

describe("what is noted of an object", () => {
  it("is told of that object alone, and by its own kind of notes alone", () => {
    const [sizes, names] = [noted<object, number>(), noted<object, string>()]
    const [one, other] = [{}, {}]
    sizes.note(one, 7)
    names.note(one, "seven")
    expect([sizes.of(one), names.of(one)]).toEqual([7, "seven"])
    expect([sizes.of(other), names.of(other)]).toEqual([undefined, undefined])
  })

  it("is seen by nobody who looks at the object", () => {
    const notes = noted<object, number>()
    const one = { a: 1 }
    notes.note(one, 7)
    expect(one).toStrictEqual({ a: 1 })
    expect([Reflect.ownKeys(one), JSON.stringify(one), notes.of({ ...one })]).toEqual([["a"], '{"a":1}', undefined])
  })

  it("is noted once", () => {
    const notes = noted<object, number>()
    const one = {}
    notes.note(one, 7)
    expect(() => notes.note(one, 8)).toThrow(TypeError)
    expect(notes.of(one)).toBe(7)
  })
})
