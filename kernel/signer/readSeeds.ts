// The seeds of this process, from the configured source: variables or the files behind them, or one file of sealed
// seeds. In development, a seed that is generated once. Each source is read on each call, so that a rotation needs no
// restart. A secret is Redacted from the moment it is read; a refusal names its source, never its content.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Effect, FileSystem, Option, Path, Redacted, Schema } from "effect"
import type { Network } from "../config/Network.ts"
import { Crypto } from "../platform/Crypto.ts"
import { Host } from "../platform/Host.ts"
import { openSeeds, type SealedSeeds } from "./sealedSeeds.ts"

/** No usable secret for sponsor or channels. The message names the variable, never its content. */
export class VaultRefused extends Schema.TaggedError<VaultRefused>()("VaultRefused", { message: Schema.String }) {}

export type Seed = Redacted.Redacted<Uint8Array>

interface Seeds {
  /** The sponsor's seed first, then former ones; empty if the sponsor's key is remote. */
  readonly sponsors: ReadonlyArray<Seed>
  /** Channels that the operator gives; None if they are derived from the sponsor's seed. */
  readonly channels: Option.Option<ReadonlyArray<Seed>>
  readonly formerChannels: ReadonlyArray<Seed>
}

const sponsorMissing = new VaultRefused({
  message:
    "the sponsor's secret seed is not set; set SPONSOR_SECRET (or the variable that networks.<id>.sponsor_secret_env " +
    "names) to the seed S… of an account that pays the fees"
})

/** Secrets, separated by commas. */
export const splitSecrets = (secrets: string): ReadonlyArray<Redacted.Redacted> =>
  secrets
    .split(",")
    .map((secret) => secret.trim())
    .filter((secret) => secret !== "")
    .map((secret) => Redacted.make(secret))

const seedOf = (secret: Redacted.Redacted, what: string): Effect.Effect<Seed, VaultRefused> =>
  StrKey.isValidEd25519SecretSeed(Redacted.value(secret))
    ? Effect.sync(() => Redacted.make(StrKey.decodeEd25519SecretSeed(Redacted.value(secret))))
    : Effect.fail(
        new VaultRefused({ message: `${what} is not a secret seed; set it to 56 letters and digits that begin with S` })
      )

const seedsOf = (secrets: ReadonlyArray<Redacted.Redacted>, what: string) =>
  Effect.forEach(secrets, (secret, i) => seedOf(secret, `${what} ${i + 1}`))

/** The sponsor's seed and the former ones, separated by commas. */
const sponsorsOf = Effect.fnUntraced(function* ([first, ...former]: ReadonlyArray<Redacted.Redacted>) {
  if (first === undefined) return []
  return [yield* seedOf(first, "the sponsor's secret"), ...(yield* seedsOf(former, "the secret of former sponsor"))]
})

/** An unreadable file of a variable becomes a refusal with the error's own message. */
const read = <A>(get: () => A): Effect.Effect<A, VaultRefused> =>
  Effect.try({
    try: get,
    catch: (error) => new VaultRefused({ message: error instanceof Error ? error.message : "a secret cannot be read" })
  })

const readSealed = Effect.fnUntraced(function* (network: Network["Service"]) {
  const sealed = yield* read(() => network.sealedSeeds)
  if (sealed === undefined) return undefined
  const refuse = (message: string) =>
    new VaultRefused({ message: `networks.${network.id}.seeds_file (${sealed.file}): ${message}` })
  if (Option.isNone(sealed.passphrase)) return yield* refuse("its passphrase is not set (SEEDS_PASSPHRASE)")
  const files = yield* FileSystem.FileSystem
  const text = yield* Effect.mapError(files.readFileString(sealed.file), () => refuse("it cannot be read"))
  const opened = openSeeds(yield* Crypto, text, sealed.passphrase.value)
  return typeof opened === "string" ? yield* refuse(opened) : opened
})

const givenChannels = (secrets: Option.Option<Redacted.Redacted>, sealed: SealedSeeds | undefined) => {
  const [given = "", former = ""] = Option.match(secrets, {
    onNone: () => [],
    onSome: (list) => Redacted.value(list).split(";")
  })
  return sealed !== undefined && sealed.channels.length > 0
    ? { given: sealed.channels, former: sealed.formerChannels }
    : { given: splitSecrets(given), former: [...splitSecrets(former), ...(sealed?.formerChannels ?? [])] }
}

/** Development only: a seed generated once and kept in the state folder, readable by this user only. */
const developmentSeed = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const crypto = yield* Crypto
  const file = path.join((yield* Host).stateFolder, "sponsor.seed")
  const unusable = () => new VaultRefused({ message: `the development seed ${file} cannot be read or written` })
  const stored = Effect.mapError(files.readFileString(file), unusable).pipe(
    Effect.flatMap((text) => sponsorsOf(splitSecrets(text)))
  )
  if (yield* Effect.mapError(files.exists(file), unusable)) return yield* stored
  const seed = crypto.randomBytes(32)
  yield* files
    .writeFileString(file, `${StrKey.encodeEd25519SecretSeed(seed)}\n`, { mode: 0o600 })
    .pipe(Effect.mapError(unusable))
  return yield* stored
})

/** Reads the seeds from the settings; generates nothing. */
const readGiven = Effect.fnUntraced(function* (network: Network["Service"]) {
  const sealed = yield* readSealed(network)
  const secret = yield* read(() => network.sponsorSecret)
  if (sealed !== undefined && sealed.sponsor.length > 0 && Option.isSome(secret)) {
    return yield* new VaultRefused({
      message:
        "the sponsor's seed is given twice, in seeds_file and in the variable of sponsor_secret_env; leave one out"
    })
  }
  const given =
    sealed?.sponsor ?? Option.match(secret, { onNone: () => [], onSome: (s) => splitSecrets(Redacted.value(s)) })
  const sponsors = yield* sponsorsOf(given)
  const channels = givenChannels(yield* read(() => network.channelSecrets), sealed)
  return {
    sponsors,
    channels:
      channels.given.length === 0 ? Option.none() : Option.some(yield* seedsOf(channels.given, "channel secret")),
    formerChannels: yield* seedsOf(channels.former, "the secret of former channel")
  } satisfies Seeds
})

const hasRemoteChannels = ({ channelSigners = [] }: Network["Service"]) => channelSigners.length > 0

/** Reads the seeds from the settings, and refuses those that the vault cannot use. */
const readUsable = Effect.fnUntraced(function* (network: Network["Service"]) {
  const seeds = yield* readGiven(network)
  if (network.sponsorSigner === undefined) {
    if (seeds.sponsors.length === 0 && !network.developmentAutoFund) return yield* sponsorMissing
  } else if (Option.isNone(seeds.channels) && !hasRemoteChannels(network)) {
    return yield* new VaultRefused({
      message:
        "channels cannot be derived from a key that another machine holds; give their seeds in the variable of " +
        "channel_secrets_env or in seeds_file, or name channel_signers"
    })
  }
  return seeds
})

/** Refuses settings that the vault would refuse: a missing or an invalid secret. Generates and keeps nothing. */
export const checkSecrets = (network: Network["Service"]) => Effect.asVoid(readUsable(network))

export const readSeeds = Effect.fn("Vault.readSeeds")(function* (network: Network["Service"]) {
  const seeds = yield* readUsable(network)
  return seeds.sponsors.length > 0 || network.sponsorSigner !== undefined
    ? seeds
    : { ...seeds, sponsors: yield* developmentSeed }
})
