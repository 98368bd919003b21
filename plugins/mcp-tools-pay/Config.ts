// What agents may spend and where it is counted (S303). Who pays stands in the tool server's own settings.
import { Context, Effect, Layer } from "effect"
import { amount, choice, section } from "../../kernel/config/Setting.ts"
import { Settings } from "../../kernel/config/Settings.ts"

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
    max_per_call: amount({ default: 1_000_000, doc: "Most that one call may cost, atomic units." }),
    max_per_session: amount({ default: 50_000_000, doc: "Most that one session may cost in a UTC day, atomic units." }),
    max_per_day: amount({
      default: 50_000_000,
      doc: "Most that one agent may cost in a UTC day, over all its sessions, atomic units."
    })
  }
)

/** Atomic units of one asset. */
export interface ConfigValues {
  readonly store: "memory" | "file" | "postgres"
  readonly perCall: bigint
  readonly perSession: bigint
  readonly perDay: bigint
}

export class Config extends Context.Service<Config, ConfigValues>()("tollkeeper/mcp-tools-pay/Config") {
  static readonly layer = Layer.effect(
    Config,
    Effect.gen(function* () {
      const budget = yield* (yield* Settings).section(budgetSection)
      return Config.of({
        store: budget.store,
        perCall: budget.max_per_call,
        perSession: budget.max_per_session,
        perDay: budget.max_per_day
      })
    })
  )
}
