// The gate before pubnet. A process that serves pubnet starts only if every condition of the specification holds (S274
// to S283). It reports all violations together, each with its remedy, before it touches a database or opens a port.
// Settings and environment are checked first; then the ledger: the network that each endpoint serves, and the balances
// of sponsor and channels. Other networks pass without a check.
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { LedgerRpc } from "../ledger/LedgerRpc.ts"
import { checkEndpoints, layer as rpcLayer } from "../ledger/makeLedgerRpc.ts"
import { Limits } from "../config/Limits.ts"
import { Network, networksSection, pubnetIssues } from "../config/Network.ts"
import { Server } from "../config/Server.ts"
import { Settings, SettingsRefused } from "../config/Settings.ts"
import { contract } from "../contract/Contract.ts"
import { checkSecrets } from "../signer/readSeeds.ts"
import { Vault } from "../signer/Vault.ts"

/** A process that only opens channels does not read channels that do not exist yet. */
export const OpensChannels = Context.Reference<boolean>("tollkeeper/settlement/OpensChannels", {
  defaultValue: () => false
})

/** Maximum accounts of one RPC call. */
const accountsMax = 200

const noKeys = (variable: string): string =>
  `no caller has a key; list at least one in ${variable} (S277), as label:secret of 16 characters or more`

const noDatabase =
  "the embedded database does not survive a loss of power; set DATABASE_URL to a PostgreSQL server of 15 or newer"

/** Violations by the settings and the environment. */
const settingErrors = Effect.fnUntraced(function* () {
  const settings = yield* Settings
  const network = yield* Network
  const { apiKeysEnv } = yield* Server
  const at = `networks.${network.id}`
  const { networkKeys, sections } = settings.declared
  const values = (yield* settings.poll(networksSection(networkKeys)))[network.id]
  const ceilings = Object.keys(values?.fees ?? {})
  const keys = Option.match(settings.secret(apiKeysEnv), {
    onNone: () => "",
    onSome: (secret) => Redacted.value(secret).replaceAll(/[\s,]/g, "")
  })
  const own = [
    ...(network.developmentAutoFund ? [`${at}.development_auto_fund must be false; fund the sponsor yourself`] : []),
    ...(values?.fee_ceilings_calibrated === true
      ? []
      : [`${at}.fee_ceilings_calibrated must be true; measure the cost of payments on pubnet, then set it`]),
    ...(ceilings.length > 0
      ? []
      : [`${at}.fees sets no ceilings; set the measured ones, such as fees.<scheme>.max_resource_fee_stroops`]),
    ...(keys === "" ? [noKeys(apiKeysEnv)] : []),
    ...(Option.isNone(settings.secret("DATABASE_URL")) ? [noDatabase] : [])
  ]
  const contributed = yield* Effect.forEach([...sections.values()], (section) =>
    Effect.map(settings.poll(section), (values) => section.pubnetIssues?.(values) ?? [])
  )
  return [...own, ...(values === undefined ? [] : pubnetIssues(networkKeys, values)), ...contributed.flat()]
})

/** Violations by the secrets. */
const secretErrors = Effect.map(
  Effect.flatMap(Network, (network) => Effect.result(checkSecrets(network))),
  (checked) => (checked._tag === "Failure" ? [checked.failure.message] : [])
)

const endpointErrors = Effect.fnUntraced(function* () {
  const { passphrase, rpcHeaders: headers, rpcUrls } = yield* Network
  const { rpcTimeout } = yield* Limits
  const checked = yield* checkEndpoints({ urls: rpcUrls, passphrase, timeout: rpcTimeout, headers })
  return checked.flatMap(({ endpoint, state }) =>
    state === "right"
      ? []
      : [`RPC endpoint ${endpoint + 1} is ${state === "unreachable" ? state : "of another network"}; correct rpc_urls`]
  )
})

/** Balances of sponsor and channels, above the ledger's reserve. */
const readAccounts = Effect.fnUntraced(function* (addresses: ReadonlyArray<string>) {
  const rpc = yield* LedgerRpc
  const pages = Array.from({ length: Math.ceil(addresses.length / accountsMax) }, (_, page) =>
    addresses.slice(page * accountsMax, (page + 1) * accountsMax)
  )
  const answers = yield* Effect.forEach(pages, rpc.accounts)
  return new Map(answers.flatMap(({ accounts }) => [...accounts]))
})

const balanceErrors = Effect.fnUntraced(function* () {
  const network = yield* Network
  const { channels, sponsor } = (yield* Vault).accounts()
  const required = channels.slice(0, network.channelCount)
  const accounts = yield* readAccounts([sponsor, ...required])
  const account = accounts.get(sponsor)
  const least = network.channelBalanceStroopsMin
  const held = account === undefined ? 0n : account.balanceStroops - account.reserveStroops
  const isLow = (address: string) => (accounts.get(address)?.balanceStroops ?? 0n) < least
  const low = (yield* OpensChannels) ? [] : required.filter(isLow)
  return [
    ...(held < least
      ? [`the sponsor ${sponsor} holds ${held} stroops above its reserve; fund it with at least ${least}`]
      : []),
    ...(required.length < network.channelCount
      ? [`${required.length} channel secrets for ${network.channelCount} channels; give as many as channel_count`]
      : []),
    ...(low.length > 0
      ? [
          `${low.length} of ${required.length} channels hold less than channel_min_balance_stroops (${least}), ` +
            `${low[0]} first; "tollkeeper channels open" creates and funds them from the sponsor`
        ]
      : [])
  ]
})

/** All reasons why this process cannot serve pubnet, a sentence each; creates and changes nothing. */
export const pubnetGateIssues = Effect.gen(function* () {
  const network = yield* Network
  const secrets = yield* secretErrors
  const endpoints = yield* endpointErrors()
  // If a development seed would be generated, no account with a readable balance exists yet.
  const isSeedMade = network.developmentAutoFund && Option.isNone(network.sponsorSecret)
  const isAskable = secrets.length === 0 && !isSeedMade && endpoints.length < network.rpcUrls.length
  const { rpcTimeout: timeout } = yield* Limits
  const { passphrase, rpcHeaders: headers, rpcUrls: urls } = network
  const options = { urls, passphrase, timeout, headers }
  const balances = isAskable
    ? balanceErrors().pipe(
        Effect.provide(Layer.merge(Vault.layer, rpcLayer(options))),
        Effect.catchTag("LedgerUnavailable", () => Effect.succeed(["the ledger could not be reached for balances"]))
      )
    : Effect.succeed([])
  return [...(yield* settingErrors()), ...secrets, ...endpoints, ...(yield* balances)]
})

const check = Effect.gen(function* () {
  const network = yield* Network
  if (network.id !== "ledger:pubnet") return
  const errors = yield* pubnetGateIssues
  if (errors.length === 0) return yield* Effect.logWarning("this process serves pubnet: payments move real money")
  const message = `this process may not serve pubnet: ${errors.map((error, at) => `(${at + 1}) ${error}`).join("; ")}`
  return yield* new SettingsRefused({ path: `networks.${network.id}`, message })
})

/** Proof that the gate was passed: the signers depend on it. */
export class PubnetGate extends Context.Service<PubnetGate, { readonly passed: true }>()(
  "tollkeeper/settlement/PubnetGate"
) {
  static readonly layer = Layer.effect(PubnetGate, Effect.as(check, PubnetGate.of({ passed: true })))
}

export const pubnetContract = contract("pubnet", PubnetGate)
