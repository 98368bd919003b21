// An account with a remote key. The process never has the key. It requests a signature of a hash, within a timeout, and
// accepts only a signature that verifies against the account's own public key. The signer is probed with a hash of no
// transaction: before a payment when it has not answered recently, and periodically while it last failed.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Effect, Semaphore } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import type { RemoteSignerSettings, RemoteSignerValues } from "../../config/RemoteSigner.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { verifyEd25519 } from "../../ledger/Ed25519.ts"
import type { LedgerUnavailable } from "../../ledger/LedgerRpc.ts"
import type { Crypto } from "../../platform/Crypto.ts"
import { type MakeRemoteKey, noSignature } from "./askSigner.ts"
import { awsKms } from "./awsKmsWire.ts"
import { gcpKms } from "./gcpKmsWire.ts"
import { httpsSigner } from "./httpsSignerWire.ts"
import { vaultTransit } from "./vaultTransitWire.ts"

const kinds: Readonly<Record<RemoteSignerSettings["kind"], MakeRemoteKey>> = {
  https: httpsSigner,
  "vault-transit": vaultTransit,
  "aws-kms": awsKms,
  "gcp-kms": gcpKms
}

/** Probe interval after a failure, for all callers together. */
const probeMillis = 1_000
/** Validity of a signer's last answer. */
const believedMillis = 5_000

export interface RemoteAccount {
  /** G… */
  readonly address: string
  /** 64 bytes that verify. */
  readonly sign: (hash: Uint8Array) => Effect.Effect<Uint8Array, LedgerUnavailable>
  /** The reason why it cannot sign, by the last probe; probes again if that was some time ago. */
  readonly problem: Effect.Effect<string | undefined>
  /** The machine that signs. Either all its accounts are available, or none is. */
  readonly machine: string
  /** When it last signed, a reading of `monotonicMillis`. */
  readonly signedAt: () => number
  /** Probes the signer unless it signed recently; concurrent callers share one probe. `problem` has the result. */
  readonly assure: Effect.Effect<void>
}

const matching = Effect.fnUntraced(function* ({ address }: RemoteSignerValues, key: Uint8Array) {
  const found = StrKey.encodeEd25519PublicKey(key)
  if (address === undefined || address === found) return found
  return yield* noSignature(`the external signer holds the key of ${found}, not of ${address}`)
})

/**
 * A remote key for messages other than the ledger's hashes, of up to 4,096 bytes. Requests the public key unless the
 * settings name the address; rejects a signature that does not verify.
 */
export const openRemoteKey = Effect.fnUntraced(function* (values: RemoteSignerValues, crypto: Crypto["Service"]) {
  const client = yield* HttpClient.HttpClient
  const remote = kinds[values.kind](values, crypto)
  const remoteAddress = Effect.flatMap(remote.publicKey, (key) => matching(values, key))
  const publicKey = StrKey.decodeEd25519PublicKey(values.address ?? (yield* remoteAddress))
  const sign = (message: Uint8Array) =>
    remote.sign(message).pipe(
      Effect.filterOrFail(
        (signature) => verifyEd25519(crypto, publicKey, message, signature),
        () => noSignature("the external signer's answer is not a signature of this by that key")
      ),
      Effect.provideService(HttpClient.HttpClient, client)
    )
  return { publicKey, sign }
}, Effect.provide(FetchHttpClient.layer))

/** Requests the address of the account unless the settings name it. */
export const openRemoteAccount = Effect.fnUntraced(function* (values: RemoteSignerValues, crypto: Crypto["Service"]) {
  const client = yield* HttpClient.HttpClient
  const remote = kinds[values.kind](values, crypto)
  const remoteAddress = Effect.flatMap(remote.publicKey, (key) => matching(values, key))
  const address = values.address ?? (yield* remoteAddress)
  const publicKey = StrKey.decodeEd25519PublicKey(address)
  const probe = crypto.sha256(new TextEncoder().encode("tollkeeper: is the signer there?"))
  const one = yield* Semaphore.make(1)
  let failing: { readonly why: string; readonly triedAt: number } | undefined
  let signedAt = -Infinity

  const note = Effect.fnUntraced(function* (why: string | undefined) {
    const now = yield* monotonicMillis
    if (why === undefined) signedAt = now
    if (why !== undefined && failing === undefined) yield* Effect.logWarning(`settling is busy: ${why}`)
    if (why === undefined && failing !== undefined) yield* Effect.logInfo("the external signer signs again")
    failing = why === undefined ? undefined : { why, triedAt: now }
  })

  const sign = (hash: Uint8Array) =>
    remote.sign(hash).pipe(
      Effect.filterOrFail(
        (signature) => verifyEd25519(crypto, publicKey, hash, signature),
        () => noSignature("the external signer's answer is not a signature of this by that account")
      ),
      Effect.tapError(({ message }) => note(message)),
      Effect.tap(() => note(undefined)),
      Effect.provideService(HttpClient.HttpClient, client)
    )

  const error = Effect.gen(function* () {
    if (failing === undefined) return undefined
    const now = yield* monotonicMillis
    if (now - failing.triedAt >= probeMillis) yield* one.withPermitsIfAvailable(1)(Effect.ignore(sign(probe)))
    return failing?.why
  })
  const assure = Effect.gen(function* () {
    const isBelieved = failing !== undefined || (yield* monotonicMillis) - signedAt < believedMillis
    if (!isBelieved) yield* Effect.ignore(sign(probe))
  }).pipe(one.withPermits(1))
  const machine = `${values.kind} ${values.url === "" ? values.region : new URL(values.url).origin}`
  return { address, sign, problem: error, machine, signedAt: () => signedAt, assure } satisfies RemoteAccount
}, Effect.provide(FetchHttpClient.layer))
