// How the pages show an address written by an untrusted party.
import { expect, it } from "vitest"
import { address } from "../../../plugins/dashboard/web/format.ts"

it.each([
  // A Cyrillic letter in place of a Latin one.
  ["https://\u0430pple.example/pay?x=\u0430", "https://xn--pple-43d.example/pay?x=\u0430"],
  ["HTTPS://shop\uff0eexample:8443/\u00fc", "https://shop.example:8443/\u00fc"],
  ["https://apple.example@\u0430pple.example/", "https://xn--pple-43d.example/"]
])("the host of %j is shown as requested", (text, shown) => expect(address(text)).toBe(shown))

it("text other than an HTTP address stays unchanged", () => {
  for (const text of [
    "https://shop.example/\u00fc",
    "mcp://\u0430pple/tool",
    "javascript:alert(1)",
    "http://\u0430 b/",
    ""
  ])
    expect(address(text)).toBe(text)
})
