// Proof of the owner of a settlement with a lost record. The transaction requires one more signer: a hash with a
// preimage that is an HMAC of network, owner and fingerprint under a key of this installation (ADR 42). So the ledger
// itself proves the owner to all replicas. No other owner or payment has this hash, and computing it requires the key.
// The key is in the database; `FACILITATOR_OWNER_SECRET` replaces it if the whole database may be lost.
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { Settings } from "../config/Settings.ts"
import { generatedSecret } from "../database/generatedSecret.ts"
import { Crypto } from "../platform/Crypto.ts"
import { conditionsOf, hashSignerOf, sameBytes, type Transaction } from "../stellar/Envelope.ts"

interface OwnedPayment {
  readonly network: string
  readonly owner: string
  /** The payment's fingerprint; it contains no line break. */
  readonly fingerprint: string
}

type Hashes = Pick<Crypto["Service"], "hmacSha256" | "sha256">

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

/** The tag of the former version, in the transaction's minimum time: 30 bits, without a key. */
export const formerTag = (
  crypto: Pick<Hashes, "sha256">,
  { fingerprint, owner }: Omit<OwnedPayment, "network">
): bigint => {
  const hash = crypto.sha256(bytesOf(`tollkeeper owner\n${owner}\n${fingerprint}`))
  const bits = new DataView(hash.buffer, hash.byteOffset).getUint32(0) >>> 2
  return BigInt(bits === 0 ? 1 : bits)
}

/** Tags with the first key, and recognizes tags of all keys. */
export const ownerTagsOf = (
  keys: readonly [Uint8Array, ...ReadonlyArray<Uint8Array>],
  crypto: Hashes
): OwnerTags["Service"] => {
  const preimageOf = (key: Uint8Array, { fingerprint, network, owner }: OwnedPayment): Uint8Array =>
    crypto.hmacSha256(key, bytesOf(`tollkeeper owner\n${network}\n${fingerprint}\n${owner}`))
  return {
    preimageFor: (owned) => preimageOf(keys[0], owned),
    isTaggedFor: (transaction, owned) => {
      const hash = hashSignerOf(transaction)
      if (hash !== undefined) return keys.some((key) => sameBytes(crypto.sha256(preimageOf(key, owned)), hash))
      const minTime = BigInt(conditionsOf(transaction)?.timeBounds?.minTime ?? 0n)
      return minTime !== 0n && minTime === formerTag(crypto, owned)
    }
  }
}

export class OwnerTags extends Context.Service<
  OwnerTags,
  {
    /** 32 bytes; the transaction's hash signer is their SHA-256. */
    readonly preimageFor: (owned: OwnedPayment) => Uint8Array
    /** False without a tag. */
    readonly isTaggedFor: (transaction: Transaction, owned: OwnedPayment) => boolean
  }
>()("tollkeeper/settlement/OwnerTags") {
  static readonly layer = Layer.effect(
    OwnerTags,
    Effect.gen(function* () {
      const given = (yield* Settings).secret("FACILITATOR_OWNER_SECRET")
      const secrets = Option.match(given, { onNone: () => "", onSome: Redacted.value })
        .split(",")
        .map((secret) => secret.trim())
        .filter((secret) => secret !== "")
      const generated = yield* generatedSecret("owner")
      const [first = generated, ...others] = secrets.map(bytesOf)
      return ownerTagsOf([first, ...others, generated], yield* Crypto)
    })
  )
}
