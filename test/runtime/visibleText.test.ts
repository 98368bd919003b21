// Text of third parties on an operator's terminal: no sequence of it acts, and JSON keeps its value.
import { expect, it } from "vitest"
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
