// Text of third parties on an operator's terminal: no sequence of it acts, and JSON keeps its value.
import { expect, it } from "@effect/vitest"
import { Cause, Console, Effect, Logger } from "effect"
import { plainLineOf } from "../../runtime/logging.ts"
import { report } from "../../runtime/report.ts"
import { visibleLine, visibleText } from "../../runtime/visibleText.ts"

const hostile = "\u001b]52;c;cm0gLXJmIH4=\u0007 \u009b2J \r\u202e\u2066\u{e0041}\u200b"

it("shows control and format characters as escapes", () => {
  expect(visibleText(hostile)).toBe(
    String.raw`\u001b]52;c;cm0gLXJmIH4=\u0007 \u009b2J \u000d\u202e\u2066\udb40\udc41\u200b`
  )
  expect(visibleText("a\nb → ü \u{1f600}")).toBe("a\nb → ü \u{1f600}")
  expect(visibleLine("a\nb")).toBe(String.raw`a\nb`)
})

it("keeps the value of JSON", () => {
  const value = { [hostile]: [hostile, '\n\t"\\'] }
  for (const text of [JSON.stringify(value), JSON.stringify(value, null, 2)])
    expect(JSON.parse(visibleText(text))).toEqual(value)
})

it.effect("shows them in a command's failure and on a terminal's log lines", () =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const message = `404 ${hostile}\nok  receipt verified`
    const console = {
      ...(yield* Console.Console),
      error: (...parts: ReadonlyArray<unknown>) => void lines.push(parts.join())
    }
    yield* report(Cause.fail({ _tag: "ReceiptRefused", message }), false).pipe(
      Effect.provideService(Console.Console, console)
    )
    const terminal = Logger.make<unknown, void>((entry) => void lines.push(plainLineOf(entry) ?? "not shown"))
    yield* Effect.logWarning(message).pipe(Effect.provide(Logger.layer([terminal])))
    expect(lines.map((line) => /404 .*$/s.exec(line)?.[0])).toEqual([
      `404 ${visibleText(hostile)} ok  receipt verified`,
      visibleLine(message)
    ])
  })
)
