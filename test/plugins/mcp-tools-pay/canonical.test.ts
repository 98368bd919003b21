import { describe, expect, it } from "@effect/vitest"
import { Keypair, MuxedAccount, Account } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { decodeSection } from "../../../kernel/config/Settings.ts"
import { canonicalOrigin, isCanonicalUrl } from "../../../plugins/mcp-tools/canonicalOrigin.ts"
import { canonicalRules } from "../../../plugins/mcp-tools-pay/policy/canonicalRules.ts"
import { decide, type PolicyQuestion } from "../../../plugins/mcp-tools-pay/policy/decide.ts"
import { policySection } from "../../../plugins/mcp-tools-pay/policy/policySection.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"

describe("an origin", () => {
  it("an origin is canonical for any spelling of host, port and case", () => {
    const spellings: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
      [
        "https://shop.example",
        ["https://shop.example/x", "HTTPS://Shop.EXAMPLE:443", "https://shop.example./", "https://shop%2Eexample/"]
      ],
      ["https://xn--bcher-kva.example", ["https://bücher.example", "https://BÜCHER.example./a"]],
      ["http://shop.example:8443", ["http://SHOP.example.:8443/x?y#z"]],
      ["http://127.0.0.1", ["http://127.1/", "http://0x7f000001", "http://[::ffff:127.0.0.1]:80", "http://2130706433"]],
      ["https://[2001:db8::1]", ["https://[2001:DB8:0:0:0:0:0:1]/", "https://[2001:0db8::0001]:443"]]
    ]
    for (const [origin, all] of spellings)
      for (const one of all) expect([one, canonicalOrigin(one)]).toEqual([one, origin])
    for (const none of [
      "https://a@shop.example",
      "https://:p@shop.example",
      "mcp://shop",
      "shop.example",
      "https://../"
    ])
      expect([none, canonicalOrigin(none)]).toEqual([none, undefined])
  })

  it("an origin matches listing URLs in that spelling, by whole path segments", () => {
    for (const url of [
      "https://shop.example/",
      "https://shop.example/a/:name",
      "http://127.0.0.1:4100/mcp",
      "mcp://x/y"
    ])
      expect([url, isCanonicalUrl(url)]).toEqual([url, true])
    const others = `https://shop.example https://shop.example./a https://Shop.example/a https://shop.example:443/a
      https://shop.example/a?admin=1 https://shop.example/a# https://shop.example/a/../b https://u@shop.example/a
      https://[::ffff:7f00:1]/a https://shop.example\\a mcp://x/y?z MCP://x/y ftp://shop.example/a`
    for (const url of others.split(/\s+/)) expect([url, isCanonicalUrl(url)]).toEqual([url, false])
  })
})

const payTo = Keypair.random().publicKey()
const muxed = new MuxedAccount(new Account(payTo, "0"), "7").accountId()
const question: PolicyQuestion = {
  agent: "key:a",
  kind: "http",
  asset: testnetUsdc,
  payTo,
  origin: "https://api.shop.example",
  grade: "proven",
  amount: 1_000n
}

const read = (rule: object) =>
  Effect.flatMap(
    decodeSection(policySection, { policy: { rules: [{ name: "no", outcome: "deny", ...rule }] } }),
    (policy) => Effect.map(canonicalRules(policy.rules), (rules) => decide({ ...policy, rules }, question).outcome)
  )

describe("an operator's rule", () => {
  it.effect("an operator's rule matches any spelling of origin, recipient or asset", () =>
    Effect.gen(function* () {
      const rules: ReadonlyArray<object> = [
        { origins: ["HTTPS://API.Shop.Example.:443/"] },
        { origins: [" https://api.shop.example "] },
        { origins: ["*.SHOP.example."] },
        { recipients: [muxed] },
        { recipients: [payTo.toLowerCase()] },
        { assets: [testnetUsdc.toLowerCase()] },
        { agents: ["key:a"] },
        { agents: ["key:A", "STDIO"] }
      ]
      for (const rule of rules) expect([rule, yield* read(rule)]).toEqual([rule, "deny"])
      for (const rule of [{ origins: ["https://api.shop.example:8443"] }, { origins: ["*.api.shop.example"] }])
        expect([rule, yield* read(rule)]).toEqual([rule, "allow"])
    })
  )

  it.effect("an operator's rule that could never match fails the start", () =>
    Effect.gen(function* () {
      const never: ReadonlyArray<object> = [
        { origins: ["api.shop.example"] },
        { origins: ["api.shop.example:443"] },
        { origins: ["https://api.shop.example/path"] },
        { origins: ["https://user@api.shop.example"] },
        { origins: ["*.shop.example:8443"] },
        { origins: ["*shop.example"] },
        { recipients: ["GSELLER"] },
        { assets: ["USDC"] },
        { agents: ["a"] },
        { agents: ["key:my bot"] },
        { agents: ["key:bot_1"] }
      ]
      for (const rule of never) {
        const refused = yield* Effect.flip(read(rule))
        expect([rule, refused._tag]).toEqual([rule, "SettingsRefused"])
        expect(refused.message).toContain("would never match")
      }
    })
  )
})
