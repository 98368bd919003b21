// The keys that this process signs with. They come from environment variables, from the files behind them, or from
// another machine (a KMS, a vault, an HTTPS signer). A remote key is the current key, and the seeds are then former
// keys. On a development network a seed is generated once and kept in the state folder. The first of several keys signs
// new outcomes; former keys sign outcomes recorded in their time. A refusal names the variable, never its content.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Effect, FileSystem, Option, Path, Redacted, Schema } from "effect"
import { Hex } from "effect/encoding"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { openRemoteKey } from "../../../kernel/signer/remote/RemoteAccount.ts"
import type { RemoteSignerValues } from "../../../kernel/config/RemoteSigner.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { Signer } from "../../../kernel/signer/Signer.ts"
import { splitSecrets } from "../../../kernel/signer/readSeeds.ts"
import type { KeyUse } from "../contract.ts"
import { Config } from "../Config.ts"

/** A secret of receipts cannot be used. The message names its variable. */
export class KeyRefused extends Schema.TaggedError<KeyRefused>()("KeyRefused", { message: Schema.String }) {}

export interface SigningKey {
  /** Fragment of the DID. */
  readonly kid: string
  readonly use: KeyUse
  /** 32 bytes of ed25519, or 65 of secp256k1. */
  readonly publicKey: Uint8Array
  /** 64 bytes over a message by ed25519; 65 over a digest by secp256k1. */
  readonly sign: (bytes: Uint8Array) => Effect.Effect<Uint8Array, KeyUnavailable>
  /** Whether a remote signer signs, which takes longer than an answer may wait. */
  readonly isRemote?: boolean
}

/** The remote signer failed, or this replica does not hold the key. The log's consumer retries. */
export class KeyUnavailable extends Schema.TaggedError<KeyUnavailable>()("KeyUnavailable", {
  message: Schema.String
}) {}

type Seed = Redacted.Redacted<Uint8Array>

/** Hex digits of a key's hash in its name. */
const nameLength = 16

const kidOf = (crypto: Crypto["Service"], use: KeyUse, publicKey: Uint8Array): string =>
  `${use}-${Hex.encode(crypto.sha256(publicKey)).slice(0, nameLength)}`

const edKey = (crypto: Crypto["Service"], use: KeyUse, seed: Seed): SigningKey => {
  const publicKey = crypto.ed25519PublicKey(Redacted.value(seed))
  let signer: ((message: Uint8Array) => Uint8Array) | undefined
  const sign = (message: Uint8Array) =>
    Effect.sync(() => (signer ??= crypto.ed25519Signer(Redacted.value(seed)))(message))
  return { kid: kidOf(crypto, use, publicKey), use, publicKey, sign }
}

/** A remote key, opened in the same way as the sponsor's. */
const remoteKey = Effect.fnUntraced(function* (use: KeyUse, values: RemoteSignerValues) {
  const crypto = yield* Crypto
  const { publicKey, sign } = yield* Effect.mapError(
    openRemoteKey(values, crypto),
    ({ message }) => new KeyRefused({ message: `${message}; see to the signer of ${use}s in the settings of receipts` })
  )
  return {
    kid: kidOf(crypto, use, publicKey),
    use,
    publicKey,
    sign: (message: Uint8Array) =>
      Effect.mapError(sign(message), ({ message: why }) => new KeyUnavailable({ message: why })),
    isRemote: true
  } satisfies SigningKey
})

/** The variables with the seeds of receipts and of checkpoints, and with the key of attestations. */
export const secretVariable = "RECEIPTS_SECRET"
const logVariable = "RECEIPTS_LOG_SECRET"
const attestationVariable = "RECEIPTS_ATTESTATION_SECRET"

const secretOf = (settings: Settings["Service"], variable: string) =>
  Effect.try({
    try: () => settings.secret(variable),
    catch: (error) => new KeyRefused({ message: error instanceof Error ? error.message : `${variable} cannot be read` })
  })

const seedsOf = Effect.fnUntraced(function* (settings: Settings["Service"], variable: string) {
  const given = yield* secretOf(settings, variable)
  const secrets = Option.match(given, { onNone: () => [], onSome: (list) => splitSecrets(Redacted.value(list)) })
  return yield* Effect.forEach(secrets, (secret) =>
    StrKey.isValidEd25519SecretSeed(Redacted.value(secret))
      ? Effect.sync(() => Redacted.make(StrKey.decodeEd25519SecretSeed(Redacted.value(secret))))
      : Effect.fail(new KeyRefused({ message: `${variable} is no list of secret seeds (S…, separated by commas)` }))
  )
})

/** Development only: generated once, readable only by this user. */
const developmentSeed = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const crypto = yield* Crypto
  const file = (yield* Path.Path).join((yield* Host).stateFolder, "receipts.seed")
  const unusable = () => new KeyRefused({ message: `the development seed ${file} cannot be read or written` })
  if (!(yield* Effect.mapError(files.exists(file), unusable)))
    yield* files
      .writeFileString(file, `${StrKey.encodeEd25519SecretSeed(crypto.randomBytes(32))}\n`, { mode: 0o600 })
      .pipe(Effect.mapError(unusable))
  const text = (yield* Effect.mapError(files.readFileString(file), unusable)).trim()
  if (!StrKey.isValidEd25519SecretSeed(text)) return yield* unusable()
  return Redacted.make(StrKey.decodeEd25519SecretSeed(text))
})

/** The log's seed if none is configured: it differs from the receipts' seed and is the same on every replica. */
const logSeedOf = (crypto: Crypto["Service"], seed: Seed): Seed =>
  Redacted.make(crypto.hmacSha256(Redacted.value(seed), new TextEncoder().encode("tollkeeper/receipts/log")))

const attestationKey = Effect.fnUntraced(function* (settings: Settings["Service"]) {
  const crypto = yield* Crypto
  const given = yield* secretOf(settings, attestationVariable)
  const bytes = Option.flatMap(given, (secret) => {
    const decoded = Hex.decode(Redacted.value(secret).trim().replace(/^0x/, ""))
    return decoded._tag === "Success" && decoded.success.length === 32 ? Option.some(decoded.success) : Option.none()
  })
  const refused = new KeyRefused({
    message: `receipts.attestation is on, and ${attestationVariable} is no secp256k1 key of 64 hex digits`
  })
  if (Option.isNone(bytes)) return yield* refused
  const { secp256k1 } = yield* Effect.promise(() => import("@noble/curves/secp256k1.js"))
  const secret = Redacted.make(bytes.value)
  if (!secp256k1.utils.isValidSecretKey(bytes.value)) return yield* refused
  const publicKey = secp256k1.getPublicKey(bytes.value, false)
  const sign = (digest: Uint8Array) =>
    Effect.sync(() => {
      const signed = secp256k1.sign(digest, Redacted.value(secret), { prehash: false, format: "recovered" })
      const [recovery] = signed
      const signature = new Uint8Array(65)
      signature.set(signed.subarray(1))
      signature[64] = 27 + recovery!
      return signature
    })
  return { kid: kidOf(crypto, "attestation", publicKey), use: "attestation", publicKey, sign } satisfies SigningKey
})

/** A key of receipts must not be an account's key: a leaked receipt key must cost no money. */
const refuseAccounts = Effect.fnUntraced(function* (keys: ReadonlyArray<SigningKey>) {
  const { isOurs } = yield* Signer
  const own = keys.find(({ publicKey }) => isOurs(StrKey.encodeEd25519PublicKey(publicKey)))
  if (own !== undefined)
    return yield* new KeyRefused({ message: `the key of ${own.use}s is an account's of the sponsor or a channel` })
})

/** Every key of this process, by use, the current one first. Empty: this process makes no receipts. */
export const readKeys = Effect.fn("receipts.readKeys")(function* () {
  const config = yield* Config
  const settings = yield* Settings
  const crypto = yield* Crypto
  if (config.host === undefined) return []
  const { logSigner, signer } = config
  const given = yield* seedsOf(settings, secretVariable)
  const isMade = given.length === 0 && signer === undefined && config.isDevelopment
  const seeds = isMade ? [yield* developmentSeed] : given
  if (seeds.length === 0 && signer === undefined) return []
  const own = yield* seedsOf(settings, logVariable)
  const logSeeds = own.length > 0 ? own : seeds.map((seed) => logSeedOf(crypto, seed))
  if (logSigner === undefined && own.length === 0 && signer !== undefined)
    return yield* new KeyRefused({
      message: `the log's key cannot be derived from one on another machine; set ${logVariable} or log_signer`
    })
  if (logSigner === undefined && own.length === 0 && !config.isDevelopment)
    yield* Effect.logWarning(
      `${logVariable} is not set: the log's key follows from ${secretVariable}, and its thief has both`
    )
  const remote = [
    ...(signer === undefined ? [] : [yield* remoteKey("receipt", signer)]),
    ...(logSigner === undefined ? [] : [yield* remoteKey("log", logSigner)])
  ]
  const attestation = config.isAttested ? [yield* attestationKey(settings)] : []
  const keys: ReadonlyArray<SigningKey> = [
    ...remote,
    ...seeds.map((seed) => edKey(crypto, "receipt", seed)),
    ...logSeeds.map((seed) => edKey(crypto, "log", seed))
  ]
  yield* refuseAccounts(keys)
  const all: ReadonlyArray<SigningKey> = [...keys, ...attestation]
  return all
})
