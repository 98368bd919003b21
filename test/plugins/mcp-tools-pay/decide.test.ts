import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { decodeSection } from "../../../kernel/config/Settings.ts"
import { decide, type PolicyQuestion } from "../../../plugins/mcp-tools-pay/policy/decide.ts"
import { policySection } from "../../../plugins/mcp-tools-pay/policy/policySection.ts"

const question: PolicyQuestion = {
  agent: "key:a",
  kind: "http",
  asset: "CUSDC",
  payTo: "GSELLER",
  origin: "https://api.shop.example",
  grade: "proven",
  amount: 1_000n
}

const decided = (policy: unknown, more: Partial<PolicyQuestion> = {}) =>
  Effect.map(decodeSection(policySection, { policy }), (values) => {
    const { outcome, rule } = decide(values, { ...question, ...more })
    return `${outcome} by ${rule}`
  })

it.effect("a policy without rules allows unless its default says otherwise", () =>
  Effect.gen(function* () {
    expect(yield* decided({})).toBe("allow by otherwise")
    expect(yield* decided({ otherwise: "deny" })).toBe("deny by otherwise")
  })
)

it.effect("the first rule whose conditions all match decides", () =>
  Effect.gen(function* () {
    const policy = {
      rules: [
        { name: "dear", above: 5_000, outcome: "approve" },
        { name: "own-shop", origins: ["*.shop.example"], kinds: ["http"], outcome: "allow" },
        { name: "proven-only", grades: ["proven"], agents: ["key:a"], outcome: "allow" }
      ],
      otherwise: "deny"
    }
    const cases: ReadonlyArray<readonly [Partial<PolicyQuestion>, string]> = [
      [{}, "allow by own-shop"],
      [{ amount: 5_000n }, "allow by own-shop"],
      [{ amount: 5_001n }, "approve by dear"],
      [{ origin: "https://shop.example" }, "allow by proven-only"],
      [{ origin: "https://evilshop.example", grade: "provisional" }, "deny by otherwise"],
      [{ origin: "https://api.shop.example.evil.example", grade: "provisional" }, "deny by otherwise"],
      [{ kind: "mcp", grade: "provisional" }, "deny by otherwise"],
      [{ origin: undefined, agent: "key:b" }, "deny by otherwise"]
    ]
    for (const [more, expected] of cases) expect([more, yield* decided(policy, more)]).toEqual([more, expected])
  })
)

it.effect("policy rules match recipients, assets and exact origins", () =>
  Effect.gen(function* () {
    const only = (rule: object) => ({ rules: [{ name: "only", outcome: "allow", ...rule }], otherwise: "deny" })
    expect(yield* decided(only({ recipients: ["GSELLER"] }))).toBe("allow by only")
    expect(yield* decided(only({ recipients: ["GOTHER"] }))).toBe("deny by otherwise")
    expect(yield* decided(only({ assets: ["CUSDC"] }))).toBe("allow by only")
    expect(yield* decided(only({ assets: ["CXLM"] }))).toBe("deny by otherwise")
    expect(yield* decided(only({ origins: ["https://api.shop.example"] }))).toBe("allow by only")
    expect(yield* decided(only({ origins: ["http://api.shop.example"] }))).toBe("deny by otherwise")
    expect(yield* decided(only({ origins: ["https://api.shop.example:8443"] }))).toBe("deny by otherwise")
  })
)

it.effect("a misspelt or unnamed policy rule fails the start", () =>
  Effect.gen(function* () {
    for (const rule of [{ name: "x", recipient: ["G"] }, { outcome: "allow" }, { name: "x", outcome: "ask" }])
      expect((yield* Effect.flip(decided({ rules: [rule] })))._tag).toBe("SettingsRefused")
  })
)
