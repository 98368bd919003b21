// The one ledger network that this process serves: its RPC endpoints, its signing keys, the allowed assets and the cost
// limits of a transaction. Networks have their neutral names here (`ledger:testnet`, `ledger:pubnet`). More than one
// enabled network is refused; the conditions for pubnet are checked by its gate (`settlement/PubnetGate.ts`).
import { Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import type { FeeCeilings, NetworkKeys } from "./NetworkKeys.ts"
import { optionalRemoteSigner, remoteSigner, remoteSignerIssue, type RemoteSignerValues } from "./RemoteSigner.ts"
import { readRpcHeaders, type RpcHeader } from "./rpcHeaders.ts"
import {
  amount,
  entry,
  flag,
  integer,
  list,
  optionalText,
  scalar,
  type Section,
  type Setting,
  stroops,
  table,
  text,
  type ValuesOf
} from "./Setting.ts"
import { Settings, SettingsRefused } from "./Settings.ts"

export type NetworkId = "ledger:testnet" | "ledger:pubnet"

/** Network passphrases as the Stellar ledger defines them. */
export const passphrases: Readonly<Record<NetworkId, string>> = {
  "ledger:testnet": "Test SDF Network ; September 2015",
  "ledger:pubnet": "Public Global Stellar Network ; September 2015"
}

const fees = entry({
  max_resource_fee_stroops: stroops({ default: 200_000, doc: "Ceiling of the resource fee, stroops." }),
  max_inclusion_fee_stroops: stroops({ default: 10_000, doc: "Ceiling of the inclusion bid, stroops." }),
  max_total_fee_stroops: stroops({ default: 210_000, doc: "Ceiling of both together, stroops." })
})
const asset = entry({
  contract: Schema.String.check(Schema.isPattern(/^C[A-Z2-7]{55}$/)),
  symbol: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9]{1,12}$/)),
  decimals: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 38 })),
  max_payment: amount({
    default: "170141183460469231731687303715884105727",
    doc: "Maximum amount of one payment, atomic units."
  })
})
const ownKeys = {
  enabled: flag({ default: false, doc: "Whether this process serves the network. One per process." }),
  rpc_urls: list(Schema.String, {
    default: [],
    doc: "RPC endpoints, in order of preference; if empty, those in RPC_URLS, comma-separated: for URLs with a key."
  }),
  rpc_headers_env: optionalText({
    doc: "Environment variable with headers for the endpoints, one `name: value` a line; after `@host ` for that host."
  }),
  friendbot_url: text({ default: "", doc: "Faucet for the development funding of the sponsor." }),
  sponsor_secret_env: text({
    default: "SPONSOR_SECRET",
    doc: "Environment variable with the sponsor's secret seed; after a rotation, previous seeds follow after commas."
  }),
  channel_secrets_env: optionalText({
    doc:
      "Environment variable with channel seeds, comma-separated; previous seeds follow a semicolon. Absent: derived " +
      "from the sponsor's seed."
  }),
  sponsor_signer: optionalRemoteSigner,
  channel_signers: list(remoteSigner, {
    default: [],
    doc: "Channels with remote keys, each as sponsor_signer. If set, there are no other channels."
  }),
  seeds_file: text({
    default: "",
    doc:
      "File with the seeds of sponsor and channels, sealed by `tollkeeper keys seal`, instead of those variables; " +
      "its passphrase is in SEEDS_PASSPHRASE."
  }),
  channel_count: integer(
    { default: 20, min: 1, max: 1_000 },
    "Number of channel accounts, until an operator sets another."
  ),
  channel_count_max: integer(
    { default: 200, min: 1, max: 1_000 },
    "Maximum number of channel accounts an operator may set; at least channel_count."
  ),
  channel_min_balance_stroops: stroops({
    default: 50_000_000,
    doc: "Balance below which a channel is topped up, stroops; at least 10 000 000, which is 1 XLM."
  }),
  development_auto_fund: flag({
    default: false,
    doc: "Create and fund missing sponsor and channels at boot. Refused on pubnet."
  }),
  fee_ceilings_calibrated: flag({
    default: false,
    doc: "Confirms that the operator has measured the fee ceilings. Required on pubnet."
  }),
  max_timeout_seconds: integer(
    { default: 300, min: 1, max: 3_600, unit: "seconds" },
    "Maximum maxTimeoutSeconds of a payment."
  ),
  assets: list(asset, { default: [], doc: "Assets accepted for payment." }),
  fees: table(fees, { default: {}, doc: "Fee ceilings by scheme; absent: the scheme's own." })
}

/** The kernel's keys of one network. */
type OwnValues = ValuesOf<typeof ownKeys>

/**
 * The section that names the networks, with the keys that plugins of the program contribute (`NetworkKeys.ts`); an
 * agent tool server reads the enabled networks from it.
 */
export const networksSection = (
  contributed: ReadonlyArray<NetworkKeys<unknown>>
): Section<Readonly<Record<string, OwnValues>>> => {
  const fields: Record<string, Setting<any>> = { ...ownKeys }
  for (const keys of contributed) {
    for (const [key, setting] of Object.entries(keys.fields)) {
      if (key in fields) throw new Error(`networks.<id>.${key} is already contributed by ${keys.owner}`)
      fields[key] = setting
    }
  }
  return scalar("networks", table(entry(fields), { default: {}, doc: "Networks by neutral name." }) as Setting<any>)
}

export interface Asset {
  /** Contract address, C… */
  readonly contract: string
  readonly symbol: string
  readonly decimals: number
  /** Maximum amount of one payment, atomic units. */
  readonly paymentMax: bigint
}

export type { FeeCeilings }

/** Ceilings of a scheme without ceilings in the settings or from its plugin. */
const usualCeilings: FeeCeilings = {
  resourceStroopsMax: 200_000n,
  inclusionStroopsMax: 10_000n,
  totalStroopsMax: 210_000n
}

/** The ceilings of a scheme: the operator's, else those of its plugin, else the usual ones. */
const ceilingsOf = (
  { fees }: OwnValues,
  contributed: ReadonlyArray<NetworkKeys<unknown>>
): ((scheme: string) => FeeCeilings) => {
  const own = new Map(contributed.flatMap(({ feeCeilings = {} }) => Object.entries(feeCeilings)))
  return (scheme) => {
    const set = Object.hasOwn(fees, scheme) ? fees[scheme] : undefined
    if (set === undefined) return own.get(scheme) ?? usualCeilings
    return {
      resourceStroopsMax: set.max_resource_fee_stroops,
      inclusionStroopsMax: set.max_inclusion_fee_stroops,
      totalStroopsMax: set.max_total_fee_stroops
    }
  }
}

/** The maximum inclusion bid on top of a resource fee, stroops. */
export const bidCeiling = ({ inclusionStroopsMax, totalStroopsMax }: FeeCeilings, resourceStroops: bigint): bigint => {
  const left = totalStroopsMax - resourceStroops
  return inclusionStroopsMax < left ? inclusionStroopsMax : left
}

export interface NetworkValues {
  readonly id: NetworkId
  readonly passphrase: string
  readonly rpcUrls: ReadonlyArray<string>
  /** Sent to the endpoints with each call; none by default. */
  readonly rpcHeaders?: ReadonlyArray<RpcHeader> | undefined
  readonly friendbotUrl: Option.Option<string>
  readonly sponsorSecret: Option.Option<Redacted.Redacted>
  readonly channelSecrets: Option.Option<Redacted.Redacted>
  /** Keys that other machines hold; none by default. */
  readonly sponsorSigner?: RemoteSignerValues | undefined
  readonly channelSigners?: ReadonlyArray<RemoteSignerValues> | undefined
  /** A file of sealed seeds instead of the two secrets, and its passphrase. */
  readonly sealedSeeds?: { readonly file: string; readonly passphrase: Option.Option<Redacted.Redacted> } | undefined
  /** Number of channels until an operator sets another, and the maximum for that. */
  readonly channelCount: number
  readonly channelCountMax: number
  readonly channelBalanceStroopsMin: bigint
  readonly developmentAutoFund: boolean
  readonly timeoutSecondsMax: number
  /** The settings of this network that a plugin declared. */
  readonly keys: <A>(keys: NetworkKeys<A>) => A
  /** By contract address. */
  readonly assets: ReadonlyMap<string, Asset>
  readonly feeCeilings: (scheme: string) => FeeCeilings
  /** Names in the setting `fees`, offered schemes or not; none by default. */
  readonly feeSchemes?: ReadonlyArray<string> | undefined
}

/** An account's minimum balance on the ledger: two base reserves. Below it no channel can be created. */
const accountStroopsMin = 10_000_000n
const balanceTooLow = `the ledger requires ${accountStroopsMin} stroops (1 XLM) of an account; give at least as many`

const rpcMissing = (id: NetworkId): string =>
  `at least one RPC endpoint is required; give it with --set 'networks.${id}.rpc_urls=["https://…"]' ` +
  "or in the profile, or in RPC_URLS"

/** The ledger's endpoints and their headers, or the errors in them; an address is never quoted. */
const readRpc = (
  { rpc_headers_env, rpc_urls }: OwnValues,
  secret: Settings["Service"]["secret"]
): Pick<NetworkValues, "rpcHeaders" | "rpcUrls"> | string => {
  const textOf = (variable: string | undefined) =>
    Option.match(Option.flatMap(present(variable), secret), { onNone: () => "", onSome: Redacted.value })
  const given = textOf("RPC_URLS")
    .split(/[\s,]+/)
    .filter((url) => url !== "")
  const rpcUrls = rpc_urls.length > 0 ? rpc_urls : given
  const wrong = rpcUrls.findIndex((url) => !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
  if (wrong >= 0) return `endpoint ${wrong + 1} is not an http(s) URL`
  const rpcHeaders = readRpcHeaders(textOf(rpc_headers_env))
  if (typeof rpcHeaders === "number")
    return `line ${rpcHeaders} of ${rpc_headers_env} is not a header; give one "name: value" a line`
  return { rpcUrls, rpcHeaders }
}

const isNetworkId = (id: string): id is NetworkId => id in passphrases
const present = (value: string | undefined): Option.Option<string> =>
  value === undefined || value === "" ? Option.none() : Option.some(value)

const pick = (values: OwnValues, { fields }: NetworkKeys<unknown>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(values as Readonly<Record<string, unknown>>).filter(([key]) => Object.hasOwn(fields, key))
  )

/** The objections of the program's plugins to serving pubnet with these values. */
export const pubnetIssues = (
  contributed: ReadonlyArray<NetworkKeys<unknown>>,
  values: OwnValues
): ReadonlyArray<string> =>
  contributed.flatMap((keys) => {
    const issue = keys.pubnetIssue(pick(values, keys))
    return issue === undefined ? [] : [`${keys.owner}: ${issue}`]
  })

export class Network extends Context.Service<Network, NetworkValues>()("tollkeeper/config/Network") {
  static readonly layer = Layer.effect(
    Network,
    Effect.gen(function* () {
      const settings = yield* Settings
      const refuse = (path: string, message: string) => new SettingsRefused({ path: `networks.${path}`, message })
      const all = yield* settings.section(networksSection(settings.declared.networkKeys))
      for (const id of Object.keys(all)) {
        if (!isNetworkId(id)) return yield* refuse(id, `no such network; known: ${Object.keys(passphrases).join(", ")}`)
      }
      const enabled = Object.entries(all).filter(([, values]) => values.enabled)
      const [first, second] = enabled
      if (first === undefined) return yield* refuse("", "no network is enabled")
      if (second !== undefined) return yield* refuse(second[0], "one process serves one network")
      const [id, values] = first
      if (!isNetworkId(id)) return yield* refuse(id, "no such network")
      const rpc = readRpc(values, settings.secret)
      if (typeof rpc === "string") return yield* refuse(`${id}.rpc_urls`, rpc)
      if (rpc.rpcUrls.length === 0) return yield* refuse(`${id}.rpc_urls`, rpcMissing(id))
      if (values.channel_min_balance_stroops < accountStroopsMin)
        return yield* refuse(`${id}.channel_min_balance_stroops`, balanceTooLow)
      const secrets = { secret: settings.secret }
      const signers = [values.sponsor_signer, ...values.channel_signers]
      for (const issue of signers.map((signer) => signer && remoteSignerIssue(signer)))
        if (issue !== undefined) return yield* refuse(`${id}.sponsor_signer, .channel_signers`, issue)
      return Network.of({
        id,
        passphrase: passphrases[id],
        ...rpc,
        friendbotUrl: present(values.friendbot_url),
        // Read on each access, because a file may change while this process runs.
        get sponsorSecret() {
          return settings.secret(values.sponsor_secret_env)
        },
        get channelSecrets() {
          return Option.flatMap(present(values.channel_secrets_env), settings.secret)
        },
        ...(values.sponsor_signer === undefined ? {} : { sponsorSigner: { ...values.sponsor_signer, ...secrets } }),
        channelSigners: values.channel_signers.map((signer) => ({ ...signer, ...secrets })),
        get sealedSeeds() {
          const { seeds_file: file } = values
          return file === "" ? undefined : { file, passphrase: settings.secret("SEEDS_PASSPHRASE") }
        },
        channelCount: values.channel_count,
        channelCountMax: Math.max(values.channel_count, values.channel_count_max),
        channelBalanceStroopsMin: values.channel_min_balance_stroops,
        developmentAutoFund: values.development_auto_fund,
        timeoutSecondsMax: values.max_timeout_seconds,
        keys: <A>(keys: NetworkKeys<A>) => pick(values, keys) as A,
        assets: new Map(
          values.assets.map(({ max_payment, ...asset }) => [asset.contract, { ...asset, paymentMax: max_payment }])
        ),
        feeCeilings: ceilingsOf(values, settings.declared.networkKeys),
        feeSchemes: Object.keys(values.fees)
      })
    })
  )

  static readonly layerTest = (values: NetworkValues): Layer.Layer<Network> =>
    Layer.succeed(Network, Network.of(values))
}
