// Settings for agents' spending: the budget, where it is stored (S303), and whether HTTP resources may be paid for. The
// signer is configured in the tool server's own settings.
import { Context, Effect, Layer, Schema } from "effect"
import { amount, choice, flag, integer, list, section, text } from "../../kernel/config/Setting.ts"
import { Settings } from "../../kernel/config/Settings.ts"
import type { Ceilings } from "./budget/Reservation.ts"
import { type Outcome, type PolicyRule, policySection } from "./policy/policySection.ts"

const budgetSection = section(
  "budget",
  "What agents may spend, counted for each asset apart. The operator's list of assets is networks.<id>.assets.",
  {
    store: choice(["memory", "file", "postgres"], {
      default: "file",
      doc:
        "Where it is kept: memory forgets with the process, file is in the state folder for one process, " +
        "postgres (DATABASE_URL) is shared by replicas."
    }),
    max_per_call: amount({ default: 1_000_000, doc: "Maximum cost of one call, atomic units." }),
    max_per_session: amount({ default: 50_000_000, doc: "Maximum cost of one session in a UTC day, atomic units." }),
    max_per_day: amount({
      default: 50_000_000,
      doc: "Maximum cost of one agent in a UTC day, over all its sessions, atomic units."
    }),
    payments_key_env: text({
      default: "TOOLS_PAYMENTS_KEY",
      doc:
        "Environment variable with a 32-byte key, hex or base64, under which open payments are sealed in the store; " +
        "the same for all replicas. Absent: derived from the signer's seed or token."
    }),
    keep_days: integer({
      default: 400,
      min: 3,
      max: 36_500,
      unit: "days",
      doc:
        "How long postgres keeps payments whose end is known; memory and file keep three days. " +
        "What is open stays everywhere."
    })
  }
)

const httpPaymentsSection = section("http_payments", "Paid HTTP resources, requested for agents.", {
  enabled: flag({ default: false, doc: "Offers the tool x402_fetch_resource; it needs a signer." }),
  request_headers: list(Schema.String, {
    default: ["accept", "accept-language", "content-type"],
    doc: "Headers that an agent may set. Those that frame a message, carry credentials or pay are never among them."
  }),
  max_request_bytes: integer({
    default: 65_536,
    min: 0,
    max: 1_048_576,
    unit: "bytes",
    doc: "Maximum body size that an agent may send."
  })
})

/** Atomic units of one asset. */
export interface ConfigValues {
  readonly store: "memory" | "file" | "postgres"
  /** Of payments whose end is known, in a shared store. */
  readonly keepMillis: number
  readonly paymentsKeyEnv: string
  readonly perCall: bigint
  /** What is counted over calls. */
  readonly ceilings: Ceilings
  readonly policy: {
    /** As they are written; the policy decides by `canonicalRules` of them. */
    readonly rules: ReadonlyArray<PolicyRule>
    readonly otherwise: Outcome
    readonly askClient: boolean
    readonly approvalMillis: number
  }
  readonly http: {
    readonly isEnabled: boolean
    /** Names in lower case. */
    readonly requestHeaders: ReadonlyArray<string>
    readonly requestBytesMax: number
  }
}

/** Declared by the plugin. */
export const declared = [budgetSection, httpPaymentsSection, policySection]

export class Config extends Context.Service<Config, ConfigValues>()("tollkeeper/mcp-tools-pay/Config") {
  static readonly layer = Layer.effect(
    Config,
    Effect.gen(function* () {
      const settings = yield* Settings
      const budget = yield* settings.section(budgetSection)
      const http = yield* settings.section(httpPaymentsSection)
      const policy = yield* settings.section(policySection)
      return Config.of({
        store: budget.store,
        keepMillis: budget.keep_days * 86_400_000,
        paymentsKeyEnv: budget.payments_key_env,
        perCall: budget.max_per_call,
        ceilings: {
          perSession: budget.max_per_session,
          perDay: budget.max_per_day,
          paymentsPerMinute: policy.max_payments_per_minute,
          perRecipient: policy.max_per_recipient_per_day,
          perOrigin: policy.max_per_origin_per_day,
          perGrade: { proven: policy.max_proven_per_day, provisional: policy.max_provisional_per_day }
        },
        policy: {
          rules: policy.rules,
          otherwise: policy.otherwise,
          askClient: policy.ask_client,
          approvalMillis: policy.approval_minutes * 60_000
        },
        http: {
          isEnabled: http.enabled,
          requestHeaders: http.request_headers.map((name) => name.toLowerCase()),
          requestBytesMax: http.max_request_bytes
        }
      })
    })
  )
}
