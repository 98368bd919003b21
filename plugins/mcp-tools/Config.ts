// The settings of the agent tool server: its facilitator, its transport, its callers, its signer, and its network
// limits. The names are the specification's (S302–S305). Contradicting settings stop the startup. Of the network
// sections we only read which networks are enabled; the sections belong to the plugin that pays.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Context, Effect, Layer, Option, Schema } from "effect"
import { networksSection } from "../../kernel/config/Network.ts"
import { networkSecuritySection } from "../../kernel/config/NetworkSecurity.ts"
import {
  choice,
  flag,
  integer,
  list,
  type MembersOf,
  membersOf,
  optionalText,
  origins,
  scalar,
  type Section,
  section,
  text
} from "../../kernel/config/Setting.ts"
import { Settings, SettingsRefused } from "../../kernel/config/Settings.ts"
import { type NeutralNetwork, readNetwork } from "../../kernel/Dialect.ts"
import { pubnetIssues, type Served } from "./pubnetIssues.ts"

const facilitatorSection = section("facilitator", "The facilitator whose public discovery the agent tools query.", {
  base_url: text({ default: "http://127.0.0.1:4022", doc: "URL of the facilitator, without a trailing slash." }),
  allow_insecure: flag({
    default: false,
    doc:
      "The facilitator may be reached by plain HTTP and on a private address. Applies only to the facilitator, " +
      "never to a seller."
  })
})

const transportSection = scalar(
  "transport",
  choice(["stdio", "http"], {
    default: "stdio",
    doc: "How agents reach the tools: stdin and stdout, or Streamable HTTP at /mcp with SSE."
  })
)

const httpSection = section("http", "The listener of the agent tools.", {
  host: optionalText({ doc: "Address to bind. Absent: 127.0.0.1 without keys, 0.0.0.0 with them." }),
  port: integer({ default: 4522, min: 0, max: 65_535 }, "TCP port; 0 picks a free one."),
  api_keys_env: text({
    default: "TOOLS_API_KEYS",
    doc: "Environment variable with the agents' bearer keys, comma separated. Required when there is a signer."
  }),
  allowed_hosts: list(Schema.String, {
    default: [],
    doc:
      "Host headers that are answered. Empty: the names of this machine, http.host, and, where another address than " +
      "loopback is bound, IP addresses."
  }),
  allowed_origins: origins({
    doc: "Origins of web pages that may call and read the answers (CORS); a request from any other page is refused."
  }),
  sessions_max: integer({ default: 500, min: 1, max: 10_000 }, "Maximum number of open sessions."),
  sessions_per_caller_max: integer(
    { default: 50, min: 1, max: 10_000 },
    "Maximum sessions of one key or, without keys, of one address. Another one ends the oldest idle one."
  ),
  calls_per_second: integer(
    { default: 200, min: 0, max: 10_000 },
    "Messages a second of one caller, bursts of twice that; 0 means no limit."
  )
})

export const signerVariables = {
  seed: "TOOLS_PAYER_SECRET",
  token: "TOOLS_SIGNER_TOKEN",
  keystoreKey: "TOOLS_KEYSTORE_KEY"
} as const

const signerSection = section("signer", "The signer that pays for agents.", {
  mode: choice(["none", "env-secret", "external", "encrypted-key"], {
    default: "none",
    doc:
      "none: no payment tool. env-secret: a seed (S…) in TOOLS_PAYER_SECRET, on stdio alone. external: an HTTPS " +
      "signer, with its bearer token in TOOLS_SIGNER_TOKEN. encrypted-key: a keystore, with its 32-byte key in " +
      "TOOLS_KEYSTORE_KEY."
  }),
  external_url: text({ default: "", doc: "external: https URL of the signer, without a trailing slash." }),
  keystore_file: text({ default: "", doc: "encrypted-key: path of the keystore." }),
  account: optionalText({
    doc:
      "The spending account (C…) that pays, if tollkeeper agent account created one for this signer's key. Absent: " +
      "the signer's own account pays."
  })
})

const answersSection = section("answers", "How much of an answer fits in one message to a client.", {
  stdio_bytes_max: integer(
    { default: 8_388_608, min: 16_384, max: 1_073_741_824, unit: "bytes" },
    "Maximum size of one message on stdout; official clients drop a line above 10 MiB. A longer answer is a " +
      "resource in pages."
  ),
  http_bytes_max: integer(
    { default: 33_554_432, min: 16_384, max: 1_073_741_824, unit: "bytes" },
    "Maximum size of one message over HTTP or SSE."
  )
})

const insecureSection = scalar(
  "allow_insecure_local",
  flag({
    default: false,
    doc: "Sellers may be dialed by plain HTTP and on private addresses. For one machine's own tests."
  })
)

export interface HttpValues extends MembersOf<typeof httpSection> {}

interface AnswerValues extends MembersOf<typeof answersSection> {
  readonly pageBytesMax: number
  /** How long pages are kept, and their total length; the oldest answer is evicted first. */
  readonly pagesMillis: number
  readonly pagesLengthMax: number
}

/** Limits of every outgoing request; the same ones for the facilitator and for sellers. */
interface NetworkCaps {
  readonly responseBytesMax: number
  readonly timeoutMillis: number
  readonly redirectsMax: number
  readonly jsonDepthMax: number
  readonly connectionsMax: number
}

interface SignerValues extends MembersOf<typeof signerSection> {}

export interface ConfigValues {
  readonly facilitatorUrl: URL
  readonly facilitatorMayBeInsecure: boolean
  readonly transport: "stdio" | "http"
  readonly http: HttpValues
  readonly answers: AnswerValues
  readonly signer: SignerValues
  readonly paidCallTimeoutMillis: number
  readonly confirmMillis: number
  readonly allowInsecureLocal: boolean
  readonly caps: NetworkCaps
  readonly resolvedMcpEndpoints: Readonly<Record<string, string>>
  /** Names of the assets that the enabled networks list, by contract. */
  readonly assets: ReadonlyMap<string, { readonly symbol: string; readonly decimals: number }>
  readonly networks: ReadonlyArray<NeutralNetwork>
}

type SectionValues<S> = S extends Section<infer A> ? A : never

const refuse = (path: string, message: string) => new SettingsRefused({ path, message })

const readFacilitatorUrl = (text: string, mayBeInsecure: boolean) => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.username !== "" ||
    url.search !== "" ||
    url.hash !== ""
  ) {
    return Effect.fail(refuse("facilitator.base_url", "an http(s) URL without user, query and fragment is required"))
  }
  return url.protocol === "http:" && !mayBeInsecure
    ? Effect.fail(refuse("facilitator.base_url", "plain HTTP needs facilitator.allow_insecure"))
    : Effect.succeed(url)
}

const readNetworks = Effect.fnUntraced(function* (table: Readonly<Record<string, { readonly enabled: boolean }>>) {
  const enabled = Object.entries(table).flatMap(([id, { enabled }]) => (enabled ? [id] : []))
  const known = enabled.flatMap((id) =>
    Option.match(readNetwork(id), { onNone: () => [], onSome: ({ network }) => [network] })
  )
  return known.length < enabled.length
    ? yield* refuse("networks", "known networks are ledger:testnet and ledger:pubnet")
    : known
})

const assetsOf = (table: unknown): ConfigValues["assets"] =>
  new Map(
    Object.values(table as Readonly<Record<string, { readonly enabled: boolean; readonly assets: ReadonlyArray<any> }>>)
      .filter(({ enabled }) => enabled)
      .flatMap(({ assets = [] }) => assets.map(({ contract, decimals, symbol }) => [contract, { symbol, decimals }]))
  )

/** Refuses with all unmet requirements together, as a facilitator does. */
const checkPubnet = Effect.fnUntraced(function* (served: Served) {
  const errors = yield* pubnetIssues(served)
  if (errors.length === 0) return
  const reported = errors.map((error, at) => `(${at + 1}) ${error}`).join("; ")
  return yield* refuse("networks.ledger:pubnet", `this tool server may not serve pubnet: ${reported}`)
})

const readEndpoints = (endpoints: Readonly<Record<string, string>>) =>
  Object.entries(endpoints).every(
    ([name, endpoint]) => name.startsWith("mcp://") && URL.canParse(endpoint) && /^https?:/.test(endpoint)
  )
    ? Effect.succeed(endpoints)
    : Effect.fail(
        refuse("network_security.resolved_mcp_endpoints", "an mcp:// identifier and an http(s) URL are required")
      )

const readSigner = Effect.fnUntraced(function* (
  signer: SectionValues<typeof signerSection>,
  transport: "stdio" | "http"
): Effect.fn.Return<SignerValues, SettingsRefused> {
  if (signer.mode === "env-secret" && transport !== "stdio")
    return yield* refuse("signer.mode", "env-secret is only for stdio; remote agents need external or encrypted-key")
  if (signer.mode === "external" && !/^https:\/\/[^?#@]+[^/?#@]$/.test(signer.external_url))
    return yield* refuse("signer.external_url", "an https URL is required")
  if (signer.mode === "encrypted-key" && signer.keystore_file === "")
    return yield* refuse("signer.keystore_file", "a keystore is required")
  if (signer.account !== undefined && !StrKey.isValidContract(signer.account))
    return yield* refuse("signer.account", "a contract account (C…) is required")
  return membersOf(signer)
})

const readHttp = (http: SectionValues<typeof httpSection>): HttpValues => ({
  ...membersOf(http),
  allowedHosts: http.allowed_hosts.map((host) => host.toLowerCase()),
  allowedOrigins: http.allowed_origins.map((origin) => origin.toLowerCase())
})

const readAnswers = (answers: SectionValues<typeof answersSection>): AnswerValues => ({
  ...membersOf(answers),
  pageBytesMax: Math.min(1_048_576, answers.stdio_bytes_max / 2, answers.http_bytes_max / 2),
  pagesMillis: 600_000,
  pagesLengthMax: 134_217_728
})

/** The sections that the plugin declares. */
export const declared = [
  facilitatorSection,
  transportSection,
  httpSection,
  answersSection,
  signerSection,
  insecureSection
]

export class Config extends Context.Service<Config, ConfigValues>()("tollkeeper/mcp-tools/Config") {
  static readonly layer = Layer.effect(
    Config,
    Effect.gen(function* () {
      const settings = yield* Settings
      const facilitator = yield* settings.section(facilitatorSection)
      const transport = yield* settings.section(transportSection)
      const http = yield* settings.section(httpSection)
      const signer = yield* settings.section(signerSection)
      const allowInsecureLocal = yield* settings.section(insecureSection)
      const security = yield* settings.section(networkSecuritySection)
      const table = yield* settings.poll(networksSection(settings.declared.networkKeys))
      const networks = yield* readNetworks(table)
      yield* checkPubnet({ networks, transport, apiKeysEnv: http.api_keys_env, signerMode: signer.mode })
      const resolvedMcpEndpoints = yield* readEndpoints(security.resolved_mcp_endpoints)
      return Config.of({
        signer: yield* readSigner(signer, transport),
        facilitatorUrl: yield* readFacilitatorUrl(facilitator.base_url.replace(/\/+$/, ""), facilitator.allow_insecure),
        facilitatorMayBeInsecure: facilitator.allow_insecure,
        transport,
        http: readHttp(http),
        answers: readAnswers(yield* settings.section(answersSection)),
        paidCallTimeoutMillis: security.paid_call_timeout_ms,
        confirmMillis: security.confirm_timeout_ms,
        allowInsecureLocal,
        caps: {
          responseBytesMax: security.max_response_bytes,
          timeoutMillis: security.timeout_ms,
          redirectsMax: security.max_redirects,
          jsonDepthMax: security.max_json_depth,
          connectionsMax: security.max_concurrent_connections
        },
        resolvedMcpEndpoints,
        assets: assetsOf(table),
        networks
      })
    })
  )
}
