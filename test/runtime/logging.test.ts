// Buffered log lines: none is lost or reordered, and there are few writes.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import process from "node:process"
import { vi } from "vitest"
import { makeLineWriter } from "../../runtime/logging.ts"

const recorded = () => {
  const written: Array<string> = []
  const timers: Array<() => void> = []
  const writer = makeLineWriter({
    write: (lines) => void written.push(lines),
    later: (flush) => void timers.push(flush)
  })
  return { writer, written, pass: () => timers.splice(0).forEach((flush) => flush()), timers }
}

describe("lines of a log", () => {
  it("leave together after a moment, in their order", () => {
    const { pass, timers, writer, written } = recorded()
    for (const line of ["one", "two", "three"]) writer.line(line)
    expect([written, timers.length]).toEqual([[], 1])
    pass()
    expect(written).toEqual(["one\ntwo\nthree\n"])
    writer.line("four")
    pass()
    expect(written).toEqual(["one\ntwo\nthree\n", "four\n"])
  })

  it("are written immediately when one of them is urgent, earlier ones first", () => {
    const { pass, writer, written } = recorded()
    writer.line("a request")
    writer.line("a warning", true)
    expect(written).toEqual(["a request\na warning\n"])
    pass()
    expect(written).toHaveLength(1)
  })

  it("do not wait in any number, and none is dropped", () => {
    const { writer, written } = recorded()
    const lines = Array.from({ length: 5_000 }, (_, index) => `line ${index} ${"x".repeat(90)}`)
    for (const line of lines) writer.line(line)
    const waiting = lines.join("\n").length - written.join("").length
    expect(written.length).toBeLessThan(50)
    expect(waiting).toBeLessThan(32_768 + 200)
    writer.flush()
    expect(written.join("")).toBe(`${lines.join("\n")}\n`)
  })
})

describe("text of third parties in a log", () => {
  const hostile = "\u001b]52;c;cm0=\u0007 \u009b2J \u202e"
  const visible = String.raw`\u001b]52;c;cm0=\u0007 \u009b2J \u202e`

  /** What a log of this kind writes for a warning and its cause, and for the sentence of an end. */
  const written = async (isTTY: boolean): Promise<string> => {
    const lines: Array<string> = []
    const write = vi.spyOn(process.stderr, "write").mockImplementation((line) => lines.push(String(line)) > 0)
    const error = vi.spyOn(console, "error").mockImplementation((line) => void lines.push(String(line)))
    const before = process.stderr.isTTY
    process.stderr.isTTY = isTTY
    try {
      vi.resetModules()
      const { logging, sayRefusal } = await import("../../runtime/logging.ts")
      await Effect.runPromise(
        Effect.logWarning("an endpoint failed", new Error(hostile)).pipe(
          Effect.andThen(sayRefusal(`it answered ${hostile}`, true)),
          Effect.provide(logging)
        )
      )
    } finally {
      process.stderr.isTTY = before
      for (const spy of [write, error]) spy.mockRestore()
    }
    return lines.join("")
  }

  for (const [kind, isTTY] of [
    ["a terminal", true],
    ["a collector", false]
  ] as const) {
    it(`is written as visible escapes for ${kind}`, async () => {
      const text = await written(isTTY)
      expect(text.split(visible)).toHaveLength(3)
      expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    })
  }
})
