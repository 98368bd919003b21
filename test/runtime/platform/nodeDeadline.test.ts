import { describe, expect, it } from "vitest"
import { DeadlinePassed } from "../../../kernel/platform/Deadline.ts"
import { runWithin } from "../../../runtime/platform/nodeDeadline.ts"

/** A WebAssembly loop without calls: `loop br 0 end`. */
const endless = (): void => {
  const code = [0x0a, 9, 1, 7, 0, 0x03, 0x40, 0x0c, 0, 0x0b, 0x0b]
  const head = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 0x66, 0, 0]
  const module = new WebAssembly.Module(Uint8Array.from([...head, ...code]))
  const { f } = new WebAssembly.Instance(module).exports as { readonly f: () => void }
  f()
}

describe("runWithin", () => {
  it("stops a loop of script, which cannot catch it", () => {
    let caught = false
    const loop = (): never => {
      try {
        for (;;);
      } finally {
        caught = true
      }
    }
    expect(() => runWithin(20, loop)).toThrow(DeadlinePassed)
    expect(caught).toBe(false)
  })

  it("stops a loop of wasm", () => {
    expect(() => runWithin(20, endless)).toThrow(DeadlinePassed)
  })

  it("answers with the work's own value, and throws what it throws", () => {
    const value = { of: "this realm" }
    expect(runWithin(10_000, () => value)).toBe(value)
    const error = new RangeError("its own")
    expect(() =>
      runWithin(10_000, () => {
        throw error
      })
    ).toThrow(error)
  })

  it("limits works within one another once, and the next one again", () => {
    expect(runWithin(10_000, () => runWithin(1, () => runWithin(1, () => 7)))).toBe(7)
    expect(() => runWithin(20, endless)).toThrow(DeadlinePassed)
    expect(runWithin(10_000, () => 8)).toBe(8)
  })
})
