// Buffered log lines: none is lost or reordered, and there are few writes.
import { describe, expect, it } from "@effect/vitest"
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
