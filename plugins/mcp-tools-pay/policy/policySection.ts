// The operator's payment policy as data: ordered rules and additional limits. The first matching rule decides. The
// limits apply in addition to the budget's. A rule ignores the members that it does not have.
import { Schema } from "effect"
import { amount, choice, entry, integer, list, section } from "../../../kernel/config/Setting.ts"

const outcomes = ["allow", "approve", "deny"] as const
export type Outcome = (typeof outcomes)[number]

const anyOf = (doc: string) => list(Schema.String, { default: [], doc: `${doc} Empty: any.` })

const rule = entry({
  name: Schema.String.check(Schema.isPattern(/^[a-z][a-z0-9-]{0,63}$/)).annotate({
    description: "Names the rule in answers and in the log."
  }),
  agents: anyOf("Agents by the label of their key, as key:LABEL, or stdio."),
  kinds: list(Schema.Literals(["http", "mcp"]), { default: [], doc: "Kinds of resource. Empty: any." }),
  assets: anyOf("Contract addresses of tokens."),
  recipients: anyOf("Addresses of recipients."),
  origins: anyOf("Origins of resources, as https://host, or *.host for its subdomains."),
  grades: list(Schema.Literals(["proven", "provisional"]), {
    default: [],
    doc: "Whether the origin has confirmed the payee. Empty: any."
  }),
  above: amount({ default: 0, doc: "Only payments above this, atomic units." }),
  outcome: choice(outcomes, {
    default: "deny",
    doc: "allow: pay within the budget. approve: ask a person. deny: refuse."
  })
})

export const policySection = section("policy", "Which payments agents may make, in addition to the budget.", {
  rules: list(rule, { default: [], doc: "In order; the first that matches a payment decides." }),
  otherwise: choice(outcomes, { default: "allow", doc: "Decision when no rule matches." }),
  max_payments_per_minute: integer(
    { default: 0, min: 0, max: 10_000 },
    "Payments of one agent within a minute; 0 is no limit."
  ),
  max_per_recipient_per_day: amount({
    default: 0,
    doc: "Maximum one agent may pay to one recipient in a UTC day, atomic units of each asset; 0 is no limit."
  }),
  max_per_origin_per_day: amount({
    default: 0,
    doc:
      "Maximum one agent may pay for resources of one origin in a UTC day, atomic units of each asset; 0 is no " +
      "limit."
  }),
  max_proven_per_day: amount({
    default: 0,
    doc: "The same for all resources whose origin has confirmed the payee; 0 is no limit."
  }),
  max_provisional_per_day: amount({
    default: 0,
    doc: "The same for all resources whose origin has not; 0 is no limit."
  }),
  ask_client: choice([true, false, "http-clients"], {
    default: true,
    doc:
      "Whether a client that can ask its user is asked for approval instead of an operator: true over stdio; " +
      "http-clients over HTTP too, where a holder of an agent's key can answer itself, and is trusted to ask a person."
  }),
  approval_minutes: integer(
    { default: 60, min: 1, max: 10_080, unit: "minutes" },
    "How long a request for approval stays open, and how long an approval may be used."
  )
})

export type PolicyRule = typeof rule.Type
