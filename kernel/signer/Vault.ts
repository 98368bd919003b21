// Where the secrets of sponsor and channels are, and the only place that uses them. A secret is Redacted from the
// moment it is read, never leaves this file, and is never returned, logged or stored elsewhere. Channel keys derive
// from the sponsor's seed by HMAC unless the operator gives them, so that every replica with the same sponsor agrees on
// the channels with nothing to share. Where the operator gives them, those derived before are still signed for: what
// they hold is taken back.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Context, Effect, FileSystem, Layer, Option, Path, Redacted, Schema } from "effect"
import { Network } from "../config/Network.ts"
import type { AccountSignature } from "../stellar/Envelope.ts"
import { Crypto } from "../platform/Crypto.ts"
import { Host } from "../platform/Host.ts"

/** No usable secret for sponsor or channels. The message names the variable, never its content. */
export class VaultRefused extends Schema.TaggedError<VaultRefused>()("VaultRefused", { message: Schema.String }) {}

export class Vault extends Context.Service<
  Vault,
  {
    /** The sponsor's address, G… */
    readonly sponsor: string
    /**
     * Sponsors of before, whose secrets stand behind the sponsor's: they still authorize what was signed for them and
     * pay for nothing.
     */
    readonly formerSponsors: ReadonlyArray<string>
    /** The addresses of all channels there may be, by number, from 0: those in use are the first of them. */
    readonly channels: ReadonlyArray<string>
    /** Channels that were derived before the operator gave others: never lent, merged back into the sponsor. */
    readonly formerChannels: ReadonlyArray<string>
    /** Signs 32 bytes as an account of ours; None for any other address. */
    readonly sign: (address: string, hash: Uint8Array) => AccountSignature | undefined
  }
>()("tollkeeper/signer/Vault") {
  static readonly layer: Layer.Layer<Vault, VaultRefused, Network | Crypto | Host | FileSystem.FileSystem | Path.Path> =
    Layer.effect(
      Vault,
      Effect.gen(function* () {
        const network = yield* Network
        const crypto = yield* Crypto
        const [sponsorSeed, ...formerSeeds] = yield* Option.match(network.sponsorSecret, {
          onSome: sponsorSeeds,
          onNone: () =>
            network.developmentAutoFund
              ? Effect.map(developmentSeed(crypto), (seed): SponsorSeeds => [seed])
              : Effect.fail(sponsorMissing)
        })
        const derived = deriveChannels(crypto, sponsorSeed, network.channelCountMax)
        const channelSeeds = Option.getOrElse(yield* givenChannels(network), () => derived)
        const seeds = new Map<string, Redacted.Redacted<Uint8Array>>()
        const addressOf = (seed: Redacted.Redacted<Uint8Array>): string => {
          const address = StrKey.encodeEd25519PublicKey(crypto.ed25519PublicKey(Redacted.value(seed)))
          seeds.set(address, seed)
          return address
        }
        const sponsor = addressOf(sponsorSeed)
        const formerSponsors = formerSeeds.map(addressOf)
        const channels = channelSeeds.map(addressOf)
        if (new Set([sponsor, ...channels]).size !== channels.length + 1) {
          return yield* new VaultRefused({ message: "sponsor and channels must all be different accounts" })
        }
        const formerChannels = derived.map(addressOf).filter((address) => !channels.includes(address))
        return Vault.of({
          sponsor,
          formerSponsors,
          channels,
          formerChannels,
          sign: (address, hash) => {
            const seed = seeds.get(address)
            if (seed === undefined) return undefined
            return {
              publicKey: StrKey.decodeEd25519PublicKey(address),
              signature: crypto.ed25519Sign(Redacted.value(seed), hash)
            }
          }
        })
      })
    )
}

/** Channels that the operator gives. */
const givenChannels = ({ channelSecrets }: Network["Service"]) =>
  Option.match(channelSecrets, {
    onSome: (secrets) =>
      Effect.asSome(Effect.forEach(splitSecrets(secrets), (secret, i) => seedOf(secret, `channel secret ${i + 1}`))),
    onNone: () => Effect.succeedNone
  })

/** Refuses what the vault would refuse for want of a secret, or for one that is none. Nothing is made or kept. */
export const checkSecrets = Effect.fnUntraced(function* (network: Network["Service"]) {
  if (Option.isSome(network.sponsorSecret)) yield* sponsorSeeds(network.sponsorSecret.value)
  else if (!network.developmentAutoFund) return yield* sponsorMissing
  yield* givenChannels(network)
})

const splitSecrets = (secrets: Redacted.Redacted): ReadonlyArray<Redacted.Redacted> =>
  Redacted.value(secrets)
    .split(",")
    .map((secret) => secret.trim())
    .filter((secret) => secret !== "")
    .map((secret) => Redacted.make(secret))

type SponsorSeeds = readonly [Redacted.Redacted<Uint8Array>, ...ReadonlyArray<Redacted.Redacted<Uint8Array>>]

const sponsorMissing = new VaultRefused({
  message:
    "the sponsor's secret seed is not set; set SPONSOR_SECRET (or the variable that networks.<id>.sponsor_secret_env " +
    "names) to the seed S… of an account that pays the fees"
})

/** The sponsor's seed and, behind commas, those before it. */
const sponsorSeeds = Effect.fnUntraced(function* (secrets: Redacted.Redacted) {
  const [first, ...former] = splitSecrets(secrets)
  if (first === undefined) return yield* sponsorMissing
  const seeds: SponsorSeeds = [
    yield* seedOf(first, "the sponsor's secret"),
    ...(yield* Effect.forEach(former, (secret, i) => seedOf(secret, `the secret of former sponsor ${i + 1}`)))
  ]
  return seeds
})

const seedOf = (secret: Redacted.Redacted, what: string): Effect.Effect<Redacted.Redacted<Uint8Array>, VaultRefused> =>
  StrKey.isValidEd25519SecretSeed(Redacted.value(secret))
    ? Effect.sync(() => Redacted.make(StrKey.decodeEd25519SecretSeed(Redacted.value(secret))))
    : Effect.fail(
        new VaultRefused({ message: `${what} is no secret seed; set it to 56 letters and digits that begin with S` })
      )

const deriveChannels = (
  crypto: Crypto["Service"],
  sponsor: Redacted.Redacted<Uint8Array>,
  count: number
): ReadonlyArray<Redacted.Redacted<Uint8Array>> =>
  Array.from({ length: count }, (_, number) =>
    Redacted.make(crypto.hmacSha256(Redacted.value(sponsor), new TextEncoder().encode(`tollkeeper/channel/${number}`)))
  )

/** Development only: a seed made once and kept in the state folder, readable by this user alone. */
const developmentSeed = Effect.fnUntraced(function* (crypto: Crypto["Service"]) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.join((yield* Host).stateFolder, "sponsor.seed")
  const unusable = () => new VaultRefused({ message: `the development seed ${file} cannot be read or written` })
  const read = Effect.mapError(files.readFileString(file), unusable).pipe(
    Effect.flatMap((text) => seedOf(Redacted.make(text.trim()), `the seed in ${file}`))
  )
  if (yield* Effect.mapError(files.exists(file), unusable)) return yield* read
  const seed = crypto.randomBytes(32)
  yield* files
    .writeFileString(file, `${StrKey.encodeEd25519SecretSeed(seed)}\n`, { mode: 0o600 })
    .pipe(Effect.mapError(unusable))
  return yield* read
})
