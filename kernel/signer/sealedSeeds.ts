// Seeds in a file, sealed under a passphrase: JSON `{version: 1, kdf: "scrypt", cost, salt, cipher: "aes-256-gcm",
// nonce, sealed, tag}`, bytes in base64. The key is scrypt of the passphrase (r 8, p 1). The sealed content is
// `{sponsor: [S…], channels: [S…], formerChannels: [S…]}`; the first sponsor is in use. An altered file or a wrong
// passphrase opens to nothing. The file holds the cost of trying a passphrase, within bounds.
import { Option, Redacted, Result, Schema } from "effect"
import { Base64 } from "effect/encoding"
import type { Crypto } from "../platform/Crypto.ts"

/** 2^17 blocks of 1 KiB: 128 MiB and about 300 ms. */
const costDefault = 131_072
const costs = [16_384, 32_768, 65_536, 131_072, 262_144, 524_288] as const

const Sealed = Schema.fromJsonString(
  Schema.Struct({
    version: Schema.Literal(1),
    kdf: Schema.Literal("scrypt"),
    cost: Schema.Literals(costs),
    salt: Schema.String,
    cipher: Schema.Literal("aes-256-gcm"),
    nonce: Schema.String,
    sealed: Schema.String,
    tag: Schema.String
  })
)
const Seeds = Schema.fromJsonString(
  Schema.Struct({
    sponsor: Schema.Array(Schema.String),
    channels: Schema.Array(Schema.String),
    formerChannels: Schema.Array(Schema.String)
  })
)

const decodeSealed = Schema.decodeUnknownOption(Sealed)
const decodeSeeds = Schema.decodeUnknownOption(Seeds)

export interface SealedSeeds {
  readonly sponsor: ReadonlyArray<Redacted.Redacted>
  readonly channels: ReadonlyArray<Redacted.Redacted>
  readonly formerChannels: ReadonlyArray<Redacted.Redacted>
}

const encoder = new TextEncoder()
const bytesOf = (text: string): Uint8Array => Result.getOrElse(Base64.decode(text), () => new Uint8Array())

/** The file's content, or a sentence with the error in it. */
export const openSeeds = (
  crypto: Crypto["Service"],
  text: string,
  passphrase: Redacted.Redacted
): SealedSeeds | string => {
  const file = Option.getOrUndefined(decodeSealed(text))
  if (file === undefined) return "it is not a file of sealed seeds; make one with `tollkeeper keys seal`"
  const key = crypto.scrypt(encoder.encode(Redacted.value(passphrase)), bytesOf(file.salt), file.cost)
  const opened = key && crypto.aes256GcmOpen(key, bytesOf(file.nonce), bytesOf(file.sealed), bytesOf(file.tag))
  const seeds = opened && Option.getOrUndefined(decodeSeeds(new TextDecoder().decode(opened)))
  if (seeds === undefined) return "this passphrase does not decrypt it"
  const redacted = (list: ReadonlyArray<string>) => list.map((seed) => Redacted.make(seed))
  return {
    sponsor: redacted(seeds.sponsor),
    channels: redacted(seeds.channels),
    formerChannels: redacted(seeds.formerChannels)
  }
}

/** The file's text. */
export const sealSeeds = (crypto: Crypto["Service"], seeds: SealedSeeds, passphrase: Redacted.Redacted): string => {
  const [salt, nonce] = [crypto.randomBytes(16), crypto.randomBytes(12)]
  const key = crypto.scrypt(encoder.encode(Redacted.value(passphrase)), salt, costDefault)!
  const plain = (list: ReadonlyArray<Redacted.Redacted>) => list.map(Redacted.value)
  const text = JSON.stringify({
    sponsor: plain(seeds.sponsor),
    channels: plain(seeds.channels),
    formerChannels: plain(seeds.formerChannels)
  })
  const { sealed, tag } = crypto.aes256GcmSeal(key, nonce, encoder.encode(text))
  const file = {
    version: 1,
    kdf: "scrypt",
    cost: costDefault,
    salt: Base64.encode(salt),
    cipher: "aes-256-gcm",
    nonce: Base64.encode(nonce),
    sealed: Base64.encode(sealed),
    tag: Base64.encode(tag)
  }
  return `${JSON.stringify(file, null, 2)}\n`
}
