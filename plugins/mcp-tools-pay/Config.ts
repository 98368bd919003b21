// Settings for agents' spending: the budget, its store (S303), and whether HTTP resources may be paid for. The signer
// is configured in the tool server's own settings.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Context, Effect, Layer, Schema } from "effect"
import { amount, choice, flag, integer, list, optionalText, section } from "../../kernel/config/Setting.ts"
import { Settings, SettingsRefused } from "../../kernel/config/Settings.ts"
import type { Ceilings } from "./budget/Reservation.ts"
import { type Outcome, type PolicyRule, policySection } from "./policy/policySection.ts"

const budgetSection = section(
  "budget",
  "What agents may spend, counted separately for each asset. The operator's list of assets is networks.<id>.assets.",
  {
    store: choice(["memory", "file", "postgres"], {
      default: "file",
      doc:
        "Store: file is in the state folder, for all processes of one machine; postgres (DATABASE_URL) is " +
        "shared by replicas; memory ends with the process, and is for tests. Open payments are sealed under the " +
        "32-byte key in TOOLS_PAYMENTS_KEY, else under one derived from the signer's seed or token."
    }),
    max_per_call: amount({ default: 1_000_000, doc: "Maximum cost of one call, atomic units." }),
    max_per_session: amount({ default: 50_000_000, doc: "Maximum cost of one session in a UTC day, atomic units." }),
    max_per_day: amount({
      default: 50_000_000,
      doc: "Maximum cost of one agent in a UTC day, over all its sessions, atomic units."
    }),
    replay_seconds: integer(
      { default: 600, min: 0, max: 86_400, unit: "s" },
      "How long an identical call still gets the paid content without paying, after its host has acknowledged " +
        "it by another request. Until then there is no time limit."
    ),
    keep_days: integer(
      { default: 400, min: 3, max: 36_500, unit: "days" },
      "How long postgres keeps payments with a known outcome; memory and file keep three days. " +
        "Open payments are always kept."
    )
  }
)

const httpPaymentsSection = section("http_payments", "Paid HTTP resources, requested for agents.", {
  enabled: flag({ default: false, doc: "Offers the tool x402_fetch_resource; it needs a signer." }),
  request_headers: list(Schema.String, {
    default: ["accept", "accept-language", "content-type"],
    doc: "Headers that an agent may set. Those that frame a message, carry credentials or pay are never among them."
  }),
  max_request_bytes: integer(
    { default: 65_536, min: 0, max: 1_048_576, unit: "bytes" },
    "Maximum body size that an agent may send."
  )
})

const batchPaymentsSection = section(
  "batch_payments",
  "Paid HTTP resources by batch-settlement: one deposit into a payment channel, then a voucher a call.",
  {
    contract: optionalText({
      doc: "Address of the only batch contract that deposits go to; absent: batch-settlement is not used."
    }),
    max_deposit: amount({
      default: 0,
      doc: "Maximum of one deposit, atomic units, fully reserved in the budget; 0: no deposits."
    }),
    deposit_calls: integer(
      { default: 20, min: 1, max: 10_000 },
      "Number of calls that a deposit covers, if max_deposit allows it."
    ),
    max_withdraw_delay_seconds: integer(
      { default: 86_400, min: 900, max: 2_592_000, unit: "s" },
      "Maximum delay after which a payer can withdraw its deposit without the seller."
    ),
    refund_idle_seconds: integer(
      { default: 300, min: 1, max: 86_400, unit: "s" },
      "A channel's balance is refunded after this time without a call, and when the tool server stops."
    )
  }
)

export interface BatchPayments {
  readonly contract: string
  readonly depositMax: bigint
  readonly depositCalls: number
  readonly withdrawDelayMax: number
  readonly refundIdleMillis: number
}

/** Atomic units of one asset. */
interface ConfigValues {
  /** Undefined: no payments by `batch-settlement`. */
  readonly batch: BatchPayments | undefined
  readonly store: "memory" | "file" | "postgres"
  /** How long a result is replayed after its acknowledgement. */
  readonly replayMillis: number
  /** How long a shared store keeps ended payments. */
  readonly keepMillis: number
  readonly perCall: bigint
  readonly ceilings: Ceilings
  readonly policy: {
    /** As configured; the policy decides by their canonical form (`canonicalRules`). */
    readonly rules: ReadonlyArray<PolicyRule>
    readonly otherwise: Outcome
    /** True: only over stdio. */
    readonly askClient: boolean | "http-clients"
    readonly approvalMillis: number
  }
  readonly http: {
    readonly isEnabled: boolean
    /** In lower case. */
    readonly requestHeaders: ReadonlyArray<string>
    readonly requestBytesMax: number
  }
}

export const declared = [budgetSection, httpPaymentsSection, batchPaymentsSection, policySection]

export class Config extends Context.Service<Config, ConfigValues>()("tollkeeper/mcp-tools-pay/Config") {
  static readonly layer = Layer.effect(
    Config,
    Effect.gen(function* () {
      const settings = yield* Settings
      const budget = yield* settings.section(budgetSection)
      const http = yield* settings.section(httpPaymentsSection)
      const policy = yield* settings.section(policySection)
      const batch = yield* settings.section(batchPaymentsSection)
      const { contract } = batch
      if (contract !== undefined && !StrKey.isValidContract(contract))
        return yield* new SettingsRefused({ path: "batch_payments.contract", message: "a contract (C…) is required" })
      // One process counts a channel's total.
      if (contract !== undefined && batch.max_deposit > 0n && budget.store === "postgres")
        return yield* new SettingsRefused({
          path: "batch_payments.contract",
          message: "payments by batch-settlement need budget.store memory or file"
        })
      return Config.of({
        batch:
          contract === undefined || batch.max_deposit === 0n
            ? undefined
            : {
                contract,
                depositMax: batch.max_deposit,
                depositCalls: batch.deposit_calls,
                withdrawDelayMax: batch.max_withdraw_delay_seconds,
                refundIdleMillis: batch.refund_idle_seconds * 1_000
              },
        store: budget.store,
        replayMillis: budget.replay_seconds * 1_000,
        keepMillis: budget.keep_days * 86_400_000,
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
