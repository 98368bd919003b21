// The policy's decision on one payment, by canonical rules (`canonicalRules.ts`). A rule matches if all its members
// match; the first matching rule decides. Pure.
import { hostOf } from "../../mcp-tools/contract.ts"
import type { Outcome, PolicyRule } from "./policySection.ts"

export interface PolicyQuestion {
  readonly agent: string
  readonly kind: "http" | "mcp"
  readonly asset: string
  readonly payTo: string
  /** Canonical origin of the dialed address; undefined for a symbolic name without an address. */
  readonly origin: string | undefined
  readonly grade: "proven" | "provisional"
  /** Atomic units. */
  readonly amount: bigint
}

export interface Decision {
  readonly outcome: Outcome
  /** Name of the rule; `otherwise` if no rule matches. */
  readonly rule: string
}

const isAmong = (named: ReadonlyArray<string>, value: string): boolean => named.length === 0 || named.includes(value)

/** `https://host` is that origin, `*.host` every subdomain of it, any scheme and port; all are canonical. */
const isOrigin = (named: ReadonlyArray<string>, origin: string | undefined): boolean => {
  if (named.length === 0) return true
  if (origin === undefined) return false
  const host = hostOf(origin)
  return named.some((one) => (one.startsWith("*.") ? host.endsWith(one.slice(1)) : one === origin))
}

const fits = (rule: PolicyRule, { agent, amount, asset, grade, kind, origin, payTo }: PolicyQuestion): boolean =>
  isAmong(rule.agents, agent) &&
  isAmong(rule.kinds, kind) &&
  isAmong(rule.assets, asset) &&
  isAmong(rule.recipients, payTo) &&
  isAmong(rule.grades, grade) &&
  isOrigin(rule.origins, origin) &&
  (rule.above === 0n || amount > rule.above)

export const decide = (
  { otherwise, rules }: { readonly rules: ReadonlyArray<PolicyRule>; readonly otherwise: Outcome },
  question: PolicyQuestion
): Decision => {
  const rule = rules.find((one) => fits(one, question))
  return rule === undefined ? { outcome: otherwise, rule: "otherwise" } : { outcome: rule.outcome, rule: rule.name }
}
