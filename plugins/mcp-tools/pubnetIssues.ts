// Requirements for a tool server on pubnet (S284), which has to be enabled explicitly: a transport that authenticates
// agents, a signer, and a budget that survives crashes and is shared by replicas. All unmet requirements are reported
// together, each with its remedy, before anything opens.
import { Effect, Option, Redacted } from "effect"
import { Settings, type SettingsRefused } from "../../kernel/config/Settings.ts"

/** The settings of the tool server that the checks read. */
export interface Served {
  readonly networks: ReadonlyArray<string>
  readonly transport: "stdio" | "http"
  readonly apiKeysEnv: string
  readonly signerMode: string
}

const noStore =
  "budget.store must be postgres, with its server in DATABASE_URL: agents' spending survives a crash there, " +
  "and is shared by replicas"

/** The section belongs to the plugin that pays, even if it is not enabled. */
const isKeptInPostgres = Effect.gen(function* () {
  const settings = yield* Settings
  const section = settings.declared.sections.get("budget")
  const values = section === undefined ? {} : yield* settings.poll(section)
  return (values as { readonly store?: string }).store === "postgres" && Option.isSome(settings.secret("DATABASE_URL"))
})

/** One sentence for each unmet requirement; empty without pubnet. */
export const pubnetIssues = Effect.fnUntraced(function* ({
  apiKeysEnv,
  networks,
  signerMode,
  transport
}: Served): Effect.fn.Return<ReadonlyArray<string>, SettingsRefused, Settings> {
  if (!networks.includes("ledger:pubnet")) return []
  const { secret } = yield* Settings
  const keys = Option.match(secret(apiKeysEnv), { onNone: () => "", onSome: Redacted.value })
  return [
    ...(transport === "http" ? [] : ["transport must be http, where agents authenticate"]),
    ...(keys.replaceAll(/[\s,]/g, "") === ""
      ? [`no agent has a key; list at least one in ${apiKeysEnv}, as label:secret of 16 characters or more`]
      : []),
    ...(signerMode === "none"
      ? ["signer.mode is none; set external or encrypted-key, so that payments can be signed"]
      : []),
    ...((yield* isKeptInPostgres) ? [] : [noStore])
  ]
})
